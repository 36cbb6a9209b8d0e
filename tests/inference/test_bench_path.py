"""The path of a plain chat request, and that of one streamed chunk, stay short."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools import mass

BOUNDS = mass.read()["path"]
"""Per request and per chunk; calls with libraries are those of Python and built-in ones. Beside
other work fewer requests share a statement, so more calls count for each.
"""


def measured(*options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.path", "--json", *options]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def test_a_chat_request_passes_few_files_and_calls() -> None:
    path = measured("--requests", "10")

    assert path["files"] <= BOUNDS["request files"], path["files_by_package"]
    assert path["tollhouse_calls"] <= BOUNDS["request calls"], path["calls_by_package"]
    assert path["python_calls"] <= BOUNDS["request python calls"]
    assert path["builtin_calls"] <= BOUNDS["request builtin calls"]


def test_a_streamed_chunk_passes_few_files_and_calls() -> None:
    path = measured("--stream", "--requests", "2")

    assert path["files"] <= BOUNDS["chunk files"], path["files_by_package"]
    assert path["tollhouse_calls"] <= BOUNDS["chunk calls"], path["calls_by_package"]
    calls = path["python_calls"] + path["builtin_calls"]
    assert calls <= BOUNDS["chunk python and builtin calls"]
