"""A gateway with a past, for whoever tests the console in a browser.

Writes one line of JSON, its address and its keys, and serves until standard input ends. With
`--crowded` the organization is a large one.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from tests.console.crowding import crowd
from tests.console.judging import new_judge
from tests.console.seeding import seed
from tests.console.trading import be_judged, on_shelf, silent_address, trade
from tests.support import databases
from tests.support.gateway import Gateway, run_jobs, running_gateway, settings_for
from tests.support.judge import running_judge
from tests.support.judged_deployment import judged_by
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.upstream import running_upstream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.app import connect
from tollhouse.base.policies import DEMONSTRATION_JUDGE
from tollhouse.settings import LedgerSettings, OidcSettings, Settings
from tollhouse.storage import migrate

READ = ["projects:read", "audit:read", "billing:read"]


async def main() -> None:
    async with (
        databases.temporary() as url,
        running_upstream(chunk_delay_ms=20) as upstream,
        running_judge(new_judge()) as judge,
    ):
        await migrate.migrate(url)
        impatient = f"{url}?options=-csynchronous_commit%3Doff"
        with silent_address() as silent_url:
            settings = on_shelf(settings_for(impatient), upstream.base_url, silent_url)
            await serve(settings, upstream, judge.base_url)


async def serve(settings: Settings, upstream: ScriptedUpstream, judge_url: str) -> None:
    database = await connect(settings)
    org = await new_organization_fixture(database, "Example Ltd")
    other = await new_organization_fixture(database, "Second Ltd")
    seeded = await seed(org)
    if "--crowded" in sys.argv:
        await crowd(org, settings.database.url)
    await database.close()
    sandbox = msgspec.structs.replace(settings, ledger=LedgerSettings(is_sandbox=True))
    trial = judged_by(sandbox, judge_url, model=DEMONSTRATION_JUDGE)
    async with running_gateway(judged_by(sandbox, judge_url)) as gateway:
        failed_id = await trade(gateway, upstream, seeded.project_key, seeded.admin_key)
        await run_jobs(gateway.application, "reaper")
        await be_judged(gateway, seeded)
        async with (
            running_gateway(settings) as unjudged,
            running_gateway(trial) as demonstration,
            gateway_of_people(settings, org, other) as of_people,
        ):
            told = {
                "base_url": gateway.base_url,
                "unjudged_base_url": unjudged.base_url,
                "demonstration_base_url": demonstration.base_url,
                "people_base_url": of_people.base_url,
                "failed_request_id": failed_id,
                **msgspec.to_builtins(seeded),
            }
            print(msgspec.json.encode(told).decode(), flush=True)  # noqa: T201 - its one answer
            await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def gateway_of_people(
    settings: Settings, org: OrganizationFixture, other: OrganizationFixture
) -> AsyncGenerator[Gateway]:
    """A gateway whose people sign in at the provider that the environment names."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    grants = [
        {"group": "admins", "organization": str(org.organization_id), "permissions": "all"},
        {"group": "readers", "organization": str(org.organization_id), "permissions": READ},
        {"group": "readers", "organization": str(other.organization_id), "permissions": READ},
    ]
    accounting = {"group": "accountants", "permissions": ["billing:read"]}
    grants.append({**accounting, "organization": str(org.organization_id)})
    oidc = {
        "issuer": os.environ["TOLLHOUSE_TEST_ISSUER"],
        "client_id": "tollhouse",
        "client_secret": "tollhouse secret",
        "grants": grants,
    }
    server = msgspec.structs.replace(settings.server, public_url=f"http://127.0.0.1:{port}")
    configured = msgspec.structs.replace(
        settings, oidc=msgspec.convert(oidc, OidcSettings), server=server
    )
    async with running_gateway(configured, port=port) as running:
        yield running


asyncio.run(main())
