"""`bench.policies` runs as it is written down; here with sizes that prove no figure."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPOSITORY = Path(__file__).parents[2]


async def test_the_measurement_of_policies_ends_with_one_json_object() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.policies", "--json"),
        *("--few", "2", "--many", "20", "--total", "50", "--readings", "20"),
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()

    assert process.returncode == 0
    figures = json.loads(output.splitlines()[-1])
    assert [cost["in_effect"] for cost in figures["costs"]] == [2, 20]
    assert figures["check_ratio"] > 0
    for cost in figures["costs"]:
        assert all(cost[name] > 0 for name in cost)
