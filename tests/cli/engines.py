"""Verbs that run an engine, from their first words to their orderly end."""

import json
import signal
import subprocess
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from tests.cli.commands import SECONDS_MAX, Operator
from tollhouse.catalog.types import Backend, Model


@contextmanager
def running(operator: Operator, *arguments: str, lines: int = 1) -> Generator[str]:
    """The first lines that the verb prints; it is interrupted at the end, as by CTRL-C."""
    process = subprocess.Popen(
        [operator.tollhouse, *arguments],
        cwd=operator.directory,
        env=operator.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield "".join(process.stdout.readline() for _ in range(lines))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0


def offered(announced: str) -> tuple[str, Backend, Model]:
    """The base URL, and what the printed configuration says to the catalog."""
    engine: dict[str, Any] = json.loads(announced)
    tree = tomllib.loads(engine["configuration"])
    ((name, backend),) = tree["backends"].items()
    (model,) = tree["models"].values()
    assert model["backend"] == name
    return engine["base_url"], msgspec.convert(backend, Backend), msgspec.convert(model, Model)
