"""`bench.streams` runs as it is written down; here with sizes that prove no figure."""

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_the_measurement_of_streams_ends_with_one_json_object() -> None:
    sizes = ("--streams", "20", "--chunks", "20", "--chunk-delay-ms", "1")
    done = subprocess.run(
        [sys.executable, "-m", "bench.streams", "--json", *sizes],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        capture_output=True,
        check=True,
    )

    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["streams"] == figures["streams_as_sent"] == 20
    assert figures["chunks"] == 400
    assert figures["streams_lost"] == figures["chunks_lost"] == figures["streams_reordered"] == 0
    assert figures["ledger_differences"] == 0
    assert figures["memory_mb_with_all_open"] >= figures["memory_mb_before"] > 0
