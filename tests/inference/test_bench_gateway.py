"""`bench.gateway` runs as it is written down; here with sizes that prove no figure."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.clock
def test_the_measurement_of_the_gateway_ends_with_one_json_object(tmp_path: Path) -> None:
    figure = tmp_path / "shares.svg"

    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.gateway", "--json", "--rounds", "1"),
            *("--seconds", "0.5", "--figure", str(figure)),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        capture_output=True,
        check=True,
    )

    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["rounds"] == 1
    assert len(figures["bars"]) == 4
    assert figures["request_ratio"]["least"] > 0
    assert figures["chunk_ratio"]["least"] > 0
    assert sum(figures["shares"]["a request"].values()) == pytest.approx(1, abs=0.01)
    assert figure.read_text(encoding="utf-8").count("<rect") > len(figures["shares"]["a request"])
    for server in ("direct", "nginx", "tollhouse"):
        assert figures[server]["requests_per_second"] > 0
        assert figures[server]["p99_ms"] >= figures[server]["p50_ms"] > 0
    assert figures["tollhouse"]["postgresql_cpu_us_per_request"] > 0
