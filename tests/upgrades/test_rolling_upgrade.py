"""From this release to one after it and back, under load: no failed answer, exact money."""

import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hostile.customers import Customer, new_customer
from tests.identity.waiting import until
from tests.support import databases
from tests.support.deployment import TAKES, model
from tests.support.gateway import settings_for
from tests.support.processes import Service, as_toml
from tests.support.upstream import upstream_process
from tests.upgrades.releases import NEXT, WORKING_TREE, Release, next_release
from tests.upgrades.rotation import Rotation, calling
from tollhouse.app import connect
from tollhouse.settings import DatabaseSettings, Settings
from tollhouse.storage import revisions
from tollhouse.storage.database import Database

pytestmark = pytest.mark.nightly

REQUESTS = int(os.environ.get("TOLLHOUSE_UPGRADE_REQUESTS", "5"))
"""How many requests every service answers in each phase of the upgrade."""
MODEL = "example/model-a"

_RESOLVED = """
    SELECT reservation_id::text AS id, kind, posted_pico
      FROM ledger_entries
     WHERE organization_id = $1 AND phase = 1
"""
_OPEN = """
    SELECT count(*)
      FROM ledger_entries held
     WHERE organization_id = $1 AND phase = 0
       AND NOT EXISTS (
            SELECT FROM ledger_entries ended
             WHERE ended.organization_id = $1 AND ended.phase = 1
               AND ended.reservation_id = held.reservation_id)
"""
_ACCOUNT = "SELECT settled_pico, reserved_pico FROM accounts WHERE organization_id = $1"
_LET_DIE = """
    UPDATE instances
       SET heartbeat_at = clock_timestamp() - interval '1 minute'
     WHERE newest_revision <> '9001'
    RETURNING id
"""


@dataclass(frozen=True, kw_only=True)
class Upgrade:
    """A database of this release, its callers, and the services of both releases."""

    coming: Release
    configuration: Path
    database: Database
    customer: Customer
    rotation: Rotation
    stack: AsyncExitStack

    async def start(self, release: Release, name: str) -> Service:
        service = await self.stack.enter_async_context(release.serving(self.configuration, name))
        await self.rotation.add(name, service)
        return service

    async def drain(self, name: str, service: Service) -> None:
        """Take a service out of the balancer and stop it, as in a rollout."""
        await self.rotation.remove(name)
        assert await service.stop() == 0

    async def assert_exact_money(self, cut: int) -> None:
        """Every whole answer was charged once; only a killed worker's requests are still held."""
        organization_id = self.customer.org.organization_id
        entries = await self.database.fetch_all(_RESOLVED, organization_id)
        charged = Counter(row["id"] for row in entries if row["kind"] == "post")
        answered = [told.request_id for told in self.rotation.told if told.status == "200"]

        assert [answer for answer in answered if charged[str(answer)] != 1] == []
        (account,) = await self.database.fetch_all(_ACCOUNT, organization_id)
        assert account["settled_pico"] == sum(row["posted_pico"] for row in entries)
        (still_open,) = await self.database.fetch_all(_OPEN, organization_id)
        assert still_open[0] <= cut
        assert (account["reserved_pico"] == 0) == (still_open[0] == 0)


@pytest.fixture(scope="module")
def coming(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return next_release(tmp_path_factory.mktemp("next"))


@pytest.fixture
async def upgrade(coming: Release, tmp_path: Path) -> AsyncIterator[Upgrade]:
    """A database that this release made, and a customer on it."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(databases.temporary())
        engine = stack.enter_context(upstream_process())
        settings = settings_for(url)
        configuration = write_configuration(tmp_path, settings, engine)
        made = await WORKING_TREE.json(configuration, "migrate")
        assert made["revision"] == revisions.head()
        database = await connect(settings)
        stack.push_async_callback(database.close)
        customer = await new_customer(database, settings)
        yield Upgrade(
            coming=coming,
            configuration=configuration,
            database=database,
            customer=customer,
            rotation=Rotation(customer.key, MODEL),
            stack=stack,
        )


def write_configuration(folder: Path, settings: Settings, engine: str) -> Path:
    shared = Settings(
        database=DatabaseSettings(url=settings.database.url),
        secrets=settings.secrets,
        server=settings.server,
        backends={"scripted": {"replicas": [engine], "takes": TAKES}},
        models={MODEL: model()},
    )
    path = folder / "tollhouse.toml"
    path.write_text(as_toml(shared), encoding="utf-8")
    return path


@pytest.mark.clock
async def test_two_releases_serve_side_by_side_there_and_back(
    upgrade: Upgrade, record_property: Callable[[str, object], None]
) -> None:
    rotation, new, configuration = upgrade.rotation, upgrade.coming, upgrade.configuration
    first = await upgrade.start(WORKING_TREE, "old-1")
    async with calling(rotation):
        await rotation.served(REQUESTS)

        migrated = await new.json(configuration, "migrate")
        assert migrated["revision"] == NEXT
        assert migrated["contracted"] == revisions.head()
        early = await upgrade.start(new, "new")
        await rotation.served(REQUESTS)

        first.kill_newest_worker()
        await until_restarted(first)
        added = await upgrade.start(WORKING_TREE, "old-added")
        await rotation.served(REQUESTS)
        refused = await new.run(configuration, "migrate", "--contract", "--json")
        assert refused.exit_code == 1
        assert '"older_workers"' in refused.stderr

        await upgrade.drain("new", early)
        await rotation.served(REQUESTS)
        assert (await WORKING_TREE.run(configuration, "migrate", "--check")).exit_code == 0

        again = await upgrade.start(new, "new-again")
        for name, service in (("old-1", first), ("old-added", added)):
            await upgrade.drain(name, service)
        await rotation.served(REQUESTS)
        killed = await upgrade.database.fetch_all(_LET_DIE)
        assert len(killed) == 1

        contracted = await new.json(configuration, "migrate", "--contract")
        assert contracted["contracted"] == NEXT
        await rotation.served(REQUESTS)

    assert again.process.returncode is None
    cut = [told for told in rotation.told if told.status != "200"]
    record_property("answers", len(rotation.told))
    record_property("cut", len(cut))
    assert {told.name for told in cut} <= {"old-1"}, Counter((t.name, t.status) for t in cut)
    assert len(cut) <= 2 * len({told.name for told in rotation.told})
    await until_settled(upgrade, len(cut))
    await upgrade.assert_exact_money(len(cut))
    verified = await new.run(configuration, "ledger", "verify", "--json")
    assert verified.exit_code == 0, verified
    late = await WORKING_TREE.run(configuration, "serve")
    assert late.exit_code == 1
    assert "which is newer than this software" in late.stderr


async def until_restarted(service: Service) -> None:
    """Wait until the supervisor has started another worker, which is ready."""

    async def is_restarted() -> bool:
        async with service.client() as client:
            is_ready = (await client.get(f"{service.probe_url}/readyz")).is_success
        return is_ready and len(service.started_workers()) > 1

    await until(is_restarted)


async def until_settled(upgrade: Upgrade, cut: int) -> None:
    """Wait until only requests that the killed worker had admitted are open."""

    async def is_settled() -> bool:
        rows = await upgrade.database.fetch_all(_OPEN, upgrade.customer.org.organization_id)
        return rows[0][0] <= cut

    await until(is_settled)
