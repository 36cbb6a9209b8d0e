"""The path of a plain chat request, and that of one streamed chunk, stay short."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FILES_MAX = 63
CALLS_MAX = 430
PYTHON_CALLS_MAX = 550
BUILTIN_CALLS_MAX = 430
"""Per request; the last two are those of libraries too. Measured are 63, 400, 525 and 380. Beside
other work fewer requests share a statement, so more calls count for each.
"""
CHUNK_FILES_MAX = 17
CHUNK_CALLS_MAX = 48
CHUNK_PYTHON_AND_BUILTIN_CALLS_MAX = 90
"""Per chunk of a stream. The measured figures are 16, 48 and 88."""


def measured(*options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.path", "--json", *options]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def test_a_chat_request_passes_few_files_and_calls() -> None:
    path = measured("--requests", "10")

    assert path["files"] <= FILES_MAX, path["files_by_package"]
    assert path["tollhouse_calls"] <= CALLS_MAX, path["calls_by_package"]
    assert path["python_calls"] <= PYTHON_CALLS_MAX
    assert path["builtin_calls"] <= BUILTIN_CALLS_MAX


def test_a_streamed_chunk_passes_few_files_and_calls() -> None:
    path = measured("--stream", "--requests", "2")

    assert path["files"] <= CHUNK_FILES_MAX, path["files_by_package"]
    assert path["tollhouse_calls"] <= CHUNK_CALLS_MAX, path["calls_by_package"]
    calls = path["python_calls"] + path["builtin_calls"]
    assert calls <= CHUNK_PYTHON_AND_BUILTIN_CALLS_MAX
