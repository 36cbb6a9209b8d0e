"""The demo engine: llama.cpp's HTTP server inside this process."""

import importlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tollhouse.trial.errors import DemoExtraMissing, EngineNotStarted
from tollhouse.trial.model_file import Report, ignore, model_file

HOST: Final = "127.0.0.1"
SLOTS: Final = 4
SLOT_TOKENS: Final = 2_048
"""The tokens of prompt and answer of one request. llama.cpp divides its context by slots."""
THREADS: Final = 1
"""On a busy machine, two threads that wait for each other are much slower than one."""


@contextmanager
def running_llama(
    model: Path | None, *, port: int, name: str, report: Report = ignore
) -> Generator[str]:
    """Serve a model, by default the small one, and yield its URL. It stops with the block."""
    try:
        # The package has no types to import.
        xllamacpp: Any = importlib.import_module("xllamacpp")
    except ImportError as error:
        raise DemoExtraMissing from error
    path = model or model_file(report=report)
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, path, port, name))
    except RuntimeError as error:
        raise EngineNotStarted(model=path, port=port) from error
    yield server.listening_address
    # The server stops with its last reference.
    del server


def _parameters(xllamacpp: Any, model: Path, port: int, name: str) -> Any:  # noqa: ANN401 - untyped
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {name}
    parameters.hostnames = [HOST]
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * SLOT_TOKENS
    parameters.cpuparams.n_threads = THREADS
    parameters.cpuparams_batch.n_threads = THREADS
    parameters.warmup = False
    parameters.endpoint_metrics = True
    parameters.verbosity = 0
    return parameters
