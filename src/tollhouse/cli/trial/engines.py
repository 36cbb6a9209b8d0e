"""The engine of a trial: a small real model if it is available, otherwise a scripted engine."""

import importlib
from typing import Literal

import msgspec

from tollhouse.base.errors import GatewayError
from tollhouse.cli.trial import demo_engine, processes, test_upstream
from tollhouse.cli.trial.folder import Trial, TrialFolder
from tollhouse.cli.trial.running_engine import RunningEngine
from tollhouse.testing.llama import SLOT_TOKENS

NAME = "engine"
SCRIPTED_MODEL = "test"
# Yes and no are a small part of what this model answers to a question.
JUDGE = """
# The demo model also judges policies, as an example. Its verdicts mean nothing.
[judge]
backend = "demo"
model = "{model}"
context_length = {context_length}
coverage_min_basis_points = 100
"""


def start(folder: TrialFolder, trial: Trial) -> tuple[Trial, str]:
    """Start the engine. Return the trial with its process, and the engine's catalog as TOML."""
    if trial.engine is not None:
        return _start(folder, trial, trial.engine)
    if _has_demo_extra():
        try:
            return _start(folder, trial, "demo")
        except GatewayError:
            # Usually its model cannot be downloaded here; engine.log has the reason.
            pass
    return _start(folder, trial, "test")


def model(trial: Trial) -> str:
    """Return the name of the model that the engine serves."""
    return demo_engine.MODEL if trial.engine == "demo" else SCRIPTED_MODEL


def _start(folder: TrialFolder, trial: Trial, kind: Literal["demo", "test"]) -> tuple[Trial, str]:
    verb = "demo-engine" if kind == "demo" else "test-upstream"
    arguments = [verb, "--port", str(trial.engine_port), "--json"]
    process, announced = processes.start(NAME, folder.settings_path, arguments, folder.log(NAME))
    engine = msgspec.json.decode(announced, type=RunningEngine)
    port = int(engine.base_url.rpartition(":")[2].removesuffix("/v1"))
    started = msgspec.structs.replace(
        trial,
        engine=kind,
        engine_port=port,
        processes={**trial.processes, NAME: process},
    )
    return started, _configuration(kind, engine.base_url)


def _configuration(kind: Literal["demo", "test"], base_url: str) -> str:
    if kind == "test":
        return test_upstream.configuration(base_url)
    judge = JUDGE.format(model=demo_engine.MODEL, context_length=SLOT_TOKENS)
    return demo_engine.configuration(base_url) + judge


def _has_demo_extra() -> bool:
    try:
        importlib.import_module("xllamacpp")
    except ImportError:
        return False
    return True
