"""`bench.responses` runs as it is written down; here with sizes that prove no figure."""

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_the_measurement_of_responses_ends_with_one_json_object() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.responses", "--json", "--rounds", "3", "--records", "5"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        capture_output=True,
        check=True,
    )

    figures = json.loads(done.stdout.splitlines()[-1])
    assert set(figures) == {"text", "reasoning", "a call", "log-probabilities"}
    assert all(found["event_ratio"] > 0 for found in figures.values())
