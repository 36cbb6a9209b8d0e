"""Commands that measure run as they are written down; here with sizes that prove no figure."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "gateway": ("--rounds 1 --seconds 0.5", {"rounds": 1}),
    "judging_cost": (
        "--rounds 1 --policies 0 1 10 --share 0.05 --seconds 0.5",
        # A round to warm up and one that counts, of 10 requests with 1 policy and 3 with 10.
        {"questions_asked": 2 * (10 + 3 * 10), "questions_failed": 20},
    ),
    "keys": ("--small 20 --large 400 --lookups 10", {}),
    "policies": ("--few 2 --many 20 --total 50 --readings 20", {}),
    "reports": ("--events 400 --rounds 1", {"events": 400}),
    "responses": ("--rounds 3 --records 5", {}),
    "streams": (
        "--streams 20 --chunks 20 --chunk-delay-ms 1",
        {"streams_lost": 0, "chunks_lost": 0, "streams_reordered": 0, "ledger_differences": 0},
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", RUNS)
def test_a_measurement_ends_with_one_json_object(name: str) -> None:
    sizes, expected = RUNS[name]

    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", "--json", *sizes.split()],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        capture_output=True,
        check=True,
    )

    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures
    assert figures | expected == figures
