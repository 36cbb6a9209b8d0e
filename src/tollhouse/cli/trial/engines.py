"""The engines of a trial: a small real model if it is available, and a scripted engine.

The scripted engine answers for a model that can use tools, and is the demonstration judge.
"""

import importlib
from typing import Literal

import msgspec
from rich.progress import Progress

from tollhouse.base.errors import GatewayError
from tollhouse.base.policies import DEMONSTRATION_JUDGE, DEMONSTRATION_KINDS
from tollhouse.cli.trial import demo_engine, ports, processes, scripted_engine
from tollhouse.cli.trial.example_requests import BILLED_MODEL
from tollhouse.cli.trial.folder import Trial, TrialFolder
from tollhouse.cli.trial.running_engine import RunningEngine
from tollhouse.trial.errors import ModelNotDownloaded
from tollhouse.trial.llama import SLOT_TOKENS
from tollhouse.trial.model_file import model_file

NAME = "engine"
SCRIPTED = "scripted-engine"
SCRIPTED_MODEL = "test"
BILLED = f"""
# Bills although no answer arrives, as a hosted provider may: a request that breaks off then has no
# final cost until the operator decides it. The example organization has one.
[backends.test-billed]
replicas = ["{{base_url}}"]
bills_without_answer = true

[models.{BILLED_MODEL}]
backend = "test-billed"
context_length = 131072
max_output_length = 65536
tokenizer = "bytes"
pricing = {{{{ prompt = "0.000001", completion = "0.000004" }}}}
"""
JUDGE = f"""
# The demonstration judge decides by patterns. It knows only questions about {DEMONSTRATION_KINDS}.
[judge]
backend = "test"
model = "{DEMONSTRATION_JUDGE}"
context_length = 131072
has_tokenizer = false
"""
# Yes and no are a small part of what this model answers to a question.
SMALL_MODEL = f"""
# The small model judges any policy, and its verdicts mean nothing. To try it, put this into [judge]
# instead, and run `tollhouse down` and `tollhouse up`:
# backend = "demo"
# model = "{demo_engine.MODEL}"
# context_length = {SLOT_TOKENS}
# coverage_min_basis_points = 100
"""


def start(folder: TrialFolder, trial: Trial, bars: Progress) -> tuple[Trial, str]:
    """Start the engines that do not run. Return the trial and their catalog as TOML."""
    trial = _with_engine(folder, trial, bars)
    if trial.engine == "test":
        return trial, _catalog(trial.engine_port) + JUDGE
    trial = _started(folder, trial, SCRIPTED, port=trial.scripted_port)
    demo = demo_engine.configuration(_base_url(trial.engine_port))
    return trial, demo + _catalog(trial.scripted_port) + JUDGE + SMALL_MODEL


def names(trial: Trial) -> tuple[str, ...]:
    """Return the names of the engine processes that a running trial has."""
    return (NAME,) if trial.engine == "test" else (NAME, SCRIPTED)


def model(trial: Trial) -> str:
    """Return the name of the model that the engine serves."""
    return demo_engine.MODEL if trial.engine == "demo" else SCRIPTED_MODEL


def _with_engine(folder: TrialFolder, trial: Trial, bars: Progress) -> Trial:
    """Start the engine of the trial; of a new one, the small model if it can be had."""
    if trial.engine is not None:
        return _started(folder, trial, NAME, port=trial.engine_port)
    if _has_demo_extra():
        try:
            model_file(report=demo_engine.download_report(bars))
            return _started(folder, _of_kind(trial, "demo"), NAME, port=0)
        except ModelNotDownloaded as error:
            reason = f"The model could not be downloaded: {error.reason}."
            trial = msgspec.structs.replace(trial, why_scripted=reason)
        except (GatewayError, OSError) as error:
            trial = msgspec.structs.replace(trial, why_scripted=str(error))
    return _started(folder, _of_kind(trial, "test"), NAME, port=0)


def _of_kind(trial: Trial, kind: Literal["demo", "test"]) -> Trial:
    return msgspec.structs.replace(trial, engine=kind)


def _started(folder: TrialFolder, trial: Trial, name: str, *, port: int) -> Trial:
    """Start one engine unless it runs. The trial is stored, so that `down` finds the process."""
    if processes.is_running(trial.processes.get(name)):
        return trial
    is_demo = name == NAME and trial.engine == "demo"
    setting = f"backends.{'demo' if is_demo else 'test'}.replicas"
    ports.require_free(port, used_by=name, setting=setting)
    verb = "demo-engine" if is_demo else "scripted-engine"
    arguments = [verb, "--port", str(port), "--json"]
    process, announced = processes.start(name, folder.settings_path, arguments, folder.log(name))
    engine = msgspec.json.decode(announced, type=RunningEngine)
    chosen = int(engine.base_url.rpartition(":")[2].removesuffix("/v1"))
    started = msgspec.structs.replace(
        trial,
        engine_port=chosen if name == NAME else trial.engine_port,
        scripted_port=chosen if name == SCRIPTED else trial.scripted_port,
        processes={**trial.processes, name: process},
    )
    folder.write(started)
    return started


def _catalog(port: int) -> str:
    base_url = _base_url(port)
    return scripted_engine.configuration(base_url) + BILLED.format(base_url=base_url)


def _base_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def _has_demo_extra() -> bool:
    try:
        importlib.import_module("xllamacpp")
    except ImportError:
        return False
    return True
