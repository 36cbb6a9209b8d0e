"""`bench.keys` runs as it is written down; here with sizes that prove no figure."""

import asyncio
import json
import os
import sys
from pathlib import Path

import asyncpg
import pytest

from tests.support import databases

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPOSITORY = Path(__file__).parents[2]


async def _databases() -> set[str]:
    connection = await asyncpg.connect(databases.MAINTENANCE_URL)
    try:
        rows = await connection.fetch("SELECT datname FROM pg_database")
    finally:
        await connection.close()
    return {row["datname"] for row in rows}


async def test_the_measurement_of_keys_ends_with_one_json_object() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.keys", "--json"),
        *("--small", "20", "--large", "400", "--lookups", "10"),
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()

    assert process.returncode == 0
    figures = json.loads(output.splitlines()[-1])
    assert [cost["keys"] for cost in figures["lookups"]] == [20, 400]
    for cost in figures["lookups"]:
        assert 0 < cost["median_us"] <= cost["p99_us"]
        assert cost["server_us"] > 0
        assert cost["batch_server_pages"] >= cost["server_pages"] > 0
    assert figures["ratio"] > 0
    assert figures["last_use"]["uses"] == 180_000
    assert figures["last_use"]["updates_per_key_and_minute_max"] == 1
    assert figures["last_use"]["updates"] <= 20 * 3
    assert not await _databases() & {cost["database"] for cost in figures["lookups"]}
