"""`bench.reports` runs as it is written down; here with sizes that prove no figure."""

import asyncio
import json
import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


async def test_the_measurement_of_reports_ends_with_one_json_object() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.reports", "--json", "--events", "400", "--rounds", "1"),
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()

    assert process.returncode == 0
    figures = json.loads(output.splitlines()[-1])
    assert figures["events"] == 400
    assert len(figures["pages"]) == 4
    for page in figures["pages"]:
        assert 0 < page["median_ms"] <= page["worst_ms"]
    assert figures["pages"][1]["results"] >= figures["pages"][0]["results"] > 0
