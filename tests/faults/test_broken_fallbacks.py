"""A fallback that breaks off, and is billed: what is certain is charged as its own model."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.faults.test_fallbacks import DEARER, SPARE, SPARE_PRICES
from tests.faults.test_upstream_faults import PATHS, body
from tests.identity.waiting import until
from tests.ledger import independent_verifier
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import (
    COMPLETION_PICO_USD,
    PROMPT_PICO_USD,
    Deployment,
    model,
    open_deployment,
)
from tests.support.organization_fixture import OrganizationFixture
from tests.support.upstream import running_upstream
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.ledger import verification, write_offs
from tollhouse.settings import Settings

PRIMARY = "example/primary"
BREAKS: dict[str, Any] = {"text": "one two three four five", "cut": {"how": "close", "after": 4}}
TABLES = ("ledger_entries", "cost_daily", "cost_hourly")


@pytest.fixture
async def deployment(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> AsyncIterator[Deployment]:
    async with running_upstream() as spare:
        backends = {
            "primary": {"replicas": [upstream.base_url]},
            "spare": {"replicas": [spare.base_url], "bills_without_answer": True},
        }
        own: dict[str, Any] = {"features": [], "sampling_parameters": []}
        models = {
            SPARE: model(backend="spare", pricing=SPARE_PRICES, **own),
            PRIMARY: model(backend="primary", fallbacks=[SPARE], **own),
        }
        upstream.queue(msgspec.convert({"status": 503}, UpstreamScript), times=None)
        spare.queue(msgspec.convert(BREAKS, UpstreamScript), times=None)
        offered = msgspec.structs.replace(settings, backends=backends, models=models)
        async with open_deployment(offered, upstream, org) as opened:
            yield opened


async def written_off(deployment: Deployment) -> str:
    """Send a request whose fallback breaks off, let its hold be decided, and return its ID."""
    database = deployment.org.database
    async with deployment.customer() as client:
        asked = body("chat", "Hi", model_id=PRIMARY, is_stream=True)
        answer = await client.post(PATHS["chat"], json=asked)

    async def is_minimum_stored() -> bool:
        rows = await database.fetch_all("SELECT provable_charge FROM unsettled_holds")
        return bool(rows) and rows[0]["provable_charge"] is not None

    await until(is_minimum_stored)
    async with database.transaction() as tx:
        await tx.execute("UPDATE unsettled_holds SET decide_at = clock_timestamp()")
    await write_offs.write_off_due(database)
    return answer.headers["x-request-id"]


async def test_record_entry_and_costs_name_the_model_that_broke_off(
    deployment: Deployment,
) -> None:
    request_id = await written_off(deployment)

    record = await deployment.record(request_id)
    assert (record["model"], record["requested_model"]) == (SPARE, PRIMARY)
    (end,) = await deployment.org.database.fetch_all("SELECT * FROM ledger_entries WHERE phase = 1")
    assert end["posted_pico"] == DEARER * (
        end["input_tokens"] * PROMPT_PICO_USD + end["output_tokens"] * COMPLETION_PICO_USD
    )
    for table in TABLES[1:]:
        (row,) = await deployment.org.database.fetch_all(f"SELECT model FROM {table}")  # noqa: S608 - our own tables
        assert row["model"] == end["model"] == SPARE
    await assert_conserved(deployment.org.database, fallbacks={SPARE})


async def test_both_verifiers_see_a_charge_at_the_prices_of_another_model(
    deployment: Deployment,
) -> None:
    await written_off(deployment)
    database = deployment.org.database

    async with database.transaction() as tx:
        await tx.execute("SET LOCAL session_replication_role = replica")  # append-only tables
        for table in TABLES:
            await tx.execute(f"UPDATE {table} SET model = $1", PRIMARY)  # noqa: S608 - our own tables

    found = await verification.verify(database, deployment.org.organization_id)
    assert {each.name for each in found} == {"resolution.input_pico", "resolution.output_pico"}
    assert len(await independent_verifier.faults(database)) == len(found)
