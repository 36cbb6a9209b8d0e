"""`bench.judging_cost` runs as it is written down; here with sizes that prove no figure."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPOSITORY = Path(__file__).parents[2]


async def test_the_measurement_of_judging_ends_with_one_json_object() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.judging_cost", "--json", "--rounds", "1"),
        *("--policies", "0", "1", "10", "--share", "0.05", "--seconds", "0.5"),
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()

    assert process.returncode == 0
    figures = json.loads(output.splitlines()[-1])
    # A round to warm up and one that counts, of 10 requests with 1 policy and 3 with 10.
    assert figures["questions_asked"] == 2 * (10 + 3 * 10)
    assert figures["questions_failed"] == 20
    assert figures["no policy, judge fails"]["answered"] == [10, 10]
    assert figures["no policy, judge never answers"]["answered"] == [10, 10]
