"""The engine of a trial: a small real model where it can be had, else one that is scripted."""

import importlib
from typing import Literal

import msgspec

from tollhouse.base.errors import GatewayError
from tollhouse.cli import demo_engine, test_upstream
from tollhouse.cli.trial import processes
from tollhouse.cli.trial.place import Place, Trial
from tollhouse.cli.trial_engines import RunningEngine
from tollhouse.testing.llama import SLOT_TOKENS

NAME = "engine"
SCRIPTED_MODEL = "test"
# Of what it says to a question, yes and no are a small part.
JUDGE = """
# It judges policies too, to show how that goes. Its verdicts mean nothing.
[judge]
backend = "demo"
model = "{model}"
context_length = {context_length}
coverage_min_basis_points = 100
"""


def start(place: Place, trial: Trial) -> tuple[Trial, str]:
    """The trial with its engine running, and what the catalog has to say of it."""
    if trial.engine is not None:
        return _start(place, trial, trial.engine)
    if _has_demo_extra():
        try:
            return _start(place, trial, "demo")
        except GatewayError:
            # Most likely its model cannot be downloaded here: the log has the reason.
            pass
    return _start(place, trial, "test")


def model(trial: Trial) -> str:
    """The one model that the engine serves."""
    return demo_engine.MODEL if trial.engine == "demo" else SCRIPTED_MODEL


def _start(place: Place, trial: Trial, kind: Literal["demo", "test"]) -> tuple[Trial, str]:
    verb = "demo-engine" if kind == "demo" else "test-upstream"
    arguments = [verb, "--port", str(trial.engine_port), "--json"]
    process, announced = processes.start(NAME, place.settings_path, arguments, place.log(NAME))
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
