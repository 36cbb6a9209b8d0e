"""The path of a plain chat request stays short."""

import json
import subprocess
import sys
from pathlib import Path

FILES_MAX = 57
CALLS_MAX = 430
"""Per request. Both are the measured figures (55 and 359) and what batches vary by: 408 calls were
measured beside other work, where batches are smaller."""


def test_a_chat_request_passes_few_files_and_calls() -> None:
    command = [sys.executable, "-m", "bench.path", "--json", "--requests", "5"]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)

    path = json.loads(run.stdout.splitlines()[-1])

    assert path["files"] <= FILES_MAX, path["files_by_package"]
    assert path["tollhouse_calls"] <= CALLS_MAX, path["calls_by_package"]
