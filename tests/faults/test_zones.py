"""Databases and processes that live in other time zones count in days of UTC all the same."""

import time
from collections.abc import Iterator
from datetime import UTC

import asyncpg
import pytest

from tests.ledger.invariants import assert_conserved
from tests.support.deployment import chat, offering, open_deployment
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

DAY_SECONDS = 86_400
# Where summer time is in force, where it moves by half an hour, and two that make one sure: at any
# hour, it is another day than in UTC in one of them.
ZONES = ("America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati", "Pacific/Pago_Pago")


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The zone that this process lives in."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.guarantee("T8")
async def test_a_zone_puts_no_cost_into_another_bucket(
    settings: Settings,
    database_url: str,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    zone: str,
) -> None:
    connection = await asyncpg.connect(database_url)
    name = database_url.rpartition("/")[2]
    await connection.execute(f"ALTER DATABASE {name} SET timezone = '{zone}'")
    await connection.close()

    async with open_deployment(offering(settings, upstream.base_url), upstream, org) as deployment:
        async with deployment.customer() as client:
            assert (await client.post("/v1/chat/completions", json=chat())).status_code == 200
        credit = await deployment.settled(1)
        first_day = int(time.time()) // DAY_SECONDS - 1
        async with deployment.administrator() as client:
            report = await client.get(
                "/v1/organization/costs", params={"start_time": first_day * DAY_SECONDS}
            )

    (row,) = await org.database.fetch_all(
        """
        SELECT admitted_at, admitted_day
          FROM ledger_entries
         WHERE organization_id = $1 AND phase = 0
        """,
        org.organization_id,
    )
    (bucket,) = [each for each in report.json()["data"] if each["results"]]
    assert row["admitted_day"] == row["admitted_at"].astimezone(UTC).date()
    assert bucket["start_time"] == row["admitted_at"].timestamp() // DAY_SECONDS * DAY_SECONDS
    assert credit.settled_pico_usd > 0
    await assert_conserved(org.database)
