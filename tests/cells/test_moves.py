"""What a move takes along, and when it is refused; an organization with rows in every table."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from tests.ledger.invariants import assert_conserved
from tests.support import databases
from tests.support.gateway import running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.tenancy.tenant import Tenant, new_tenant
from tollhouse.app import connect
from tollhouse.base.clock import SystemClock
from tollhouse.base.errors import OrganizationMoving
from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.cli.moves import mover, tables
from tollhouse.cli.moves.documents import DocumentUnusable, MoveFolder
from tollhouse.cli.moves.mover import WrongDestination
from tollhouse.cli.moves.steps import MoveStep
from tollhouse.cli.moves.tables import DERIVED, LEFT, MOVED, TableDigest
from tollhouse.cli.session import Session
from tollhouse.ledger import marking
from tollhouse.ledger.open_holds import open_hold
from tollhouse.organizations.errors import MoveConflict
from tollhouse.settings import Settings
from tollhouse.storage import audit_chain
from tollhouse.storage.audit_chain import ChainHead, VerifiedChain
from tollhouse.storage.database import Database
from tollhouse.storage.master_secrets import MasterSecrets


@dataclass(frozen=True)
class Pair:
    """The operators of two cells, and a tenant of the first."""

    old: Session
    new: Session
    url: str
    org: OrganizationFixture
    tenant: Tenant

    @property
    def organization_id(self) -> OrganizationId:
        return self.org.organization_id

    async def export(self, folder: MoveFolder, *, seconds: int = 60) -> None:
        await mover.export(
            self.old,
            self.organization_id,
            cell="us1",
            folder=folder,
            freeze_seconds=seconds,
            announce=_ignore,
        )


def _ignore(_step: MoveStep) -> None:
    pass


async def _models(operator: Session, tenant: Tenant) -> httpx2.Response:
    async with (
        running_gateway(operator.settings) as gateway,
        gateway.client(tenant.project_key.value) as client,
    ):
        return await client.get("/v1/models")


async def _digests(database: Database, organization_id: OrganizationId) -> list[TableDigest]:
    async with database.snapshot() as tx:
        return [await tables.digest_of(tx, organization_id, name) for name in MOVED]


async def _chain(
    database: Database, organization_id: OrganizationId, stored: ChainHead | None = None
) -> VerifiedChain:
    async with database.snapshot() as tx:
        return await audit_chain.verify(tx, organization_id, stored=stored)


@asynccontextmanager
async def _operator(settings: Settings, cell: str) -> AsyncGenerator[Session]:
    settings = replace(settings, keys=replace(settings.keys, cell=cell))
    database = await connect(settings)
    try:
        yield Session(
            settings=settings,
            database=database,
            masters=MasterSecrets(settings.secrets.master_bytes()),
            clock=SystemClock(),
        )
    finally:
        await database.close()


async def _leave_unsettled(database: Database) -> None:
    """Mark the tenant's open holds, for which an export would wait."""
    rows = await database.fetch_all(
        """
        SELECT organization_id, admitted_day, reservation_id, held_pico
          FROM ledger_entries
         GROUP BY 1, 2, 3, 4
        HAVING count(*) = 1
        """
    )
    await marking.mark(database, [open_hold(row) for row in rows])


async def _number_prices(old: Database, new: Database) -> None:
    """Give the price list of the tenant's open holds another number in the new cell."""
    async with old.transaction() as tx:
        await tx.execute("SET LOCAL session_replication_role = replica")  # append-only entries
        await tx.execute(
            """
            WITH list AS (
                INSERT INTO price_revisions (digest, prices)
                VALUES (sha256('tenant'), '{"a": 1}')
                RETURNING id
            )
            UPDATE ledger_entries e
               SET price_revision = list.id
              FROM list, unsettled_holds h
             WHERE h.organization_id = e.organization_id
               AND h.admitted_day = e.admitted_day
               AND h.reservation_id = e.reservation_id
            """
        )
    async with new.transaction() as tx:
        await tx.execute("INSERT INTO price_revisions (digest, prices) VALUES ('another', '{}')")


@pytest.fixture
async def pair(migrated_template: str) -> AsyncGenerator[Pair]:
    async with AsyncExitStack() as stack:
        urls = [
            await stack.enter_async_context(databases.temporary(template=migrated_template))
            for _ in range(2)
        ]
        first, second = (settings_for(url) for url in urls)
        old = await stack.enter_async_context(_operator(first, "eu1"))
        new = await stack.enter_async_context(_operator(second, "us1"))
        org = await new_organization_fixture(old.database, cell="eu1")
        tenant = await new_tenant(org, urls[0])
        await _leave_unsettled(old.database)
        await _number_prices(old.database, new.database)
        yield Pair(old, new, urls[0], org, tenant)


async def test_every_table_is_moved_derived_or_left(database: Database) -> None:
    rows = await database.fetch_all(
        """
        SELECT relname
          FROM pg_class
         WHERE relkind IN ('r', 'p')
           AND NOT relispartition
           AND relnamespace = current_schema()::regnamespace
        """
    )

    words = [*MOVED, *DERIVED, *LEFT]
    assert sorted(words) == sorted(row["relname"] for row in rows)


async def test_every_row_arrives_and_the_old_cell_names_the_new_one(
    pair: Pair, tmp_path: Path
) -> None:
    folder = MoveFolder(tmp_path / "move")
    await pair.export(folder)
    copied = await _digests(pair.old.database, pair.organization_id)
    assert {digest.name for digest in copied if digest.rows == 0} <= {
        "ledger_closings",
        "operator_decisions",
        "spending_alerts",
    }

    await mover.receive(pair.new, folder, _ignore)
    await mover.release(pair.old, folder, _ignore)
    await mover.release(pair.old, folder, _ignore)
    await mover.activate(pair.new, folder, _ignore)
    await mover.activate(pair.new, folder, _ignore)

    arrived = await _digests(pair.new.database, pair.organization_id)
    changed = [a.name for a, b in zip(copied, arrived, strict=True) if a != b]
    # The activation is audited where the organization lives.
    assert changed == ["audit_log", "audit_chain", "audit_heads"]
    left = await _chain(pair.old.database, pair.organization_id)
    chain = await _chain(pair.new.database, pair.organization_id, stored=left.head)
    assert (left.fault, chain.fault) == (None, None)
    assert chain.head.number == left.head.number + 1
    await assert_conserved(pair.new.database)
    assert (await _models(pair.new, pair.tenant)).is_success
    moved = await _models(pair.old, pair.tenant)
    assert (moved.status_code, moved.json()["error"]["code"]) == (503, "organization_moved")
    assert "'us1'" in moved.json()["error"]["message"]
    assert moved.headers["retry-after"] == "1"


async def test_a_frozen_organization_spends_and_changes_nothing(pair: Pair, tmp_path: Path) -> None:
    neighbour = await new_organization_fixture(pair.old.database)
    project = await neighbour.project()
    key = await neighbour.project_key(project)
    await pair.export(MoveFolder(tmp_path / "move"))

    async with running_gateway(pair.old.settings) as gateway:
        for value in (pair.tenant.project_key.value, pair.tenant.admin_key.value):
            path = "/v1/models" if value.startswith("thp_") else "/v1/organization/admin_api_keys"
            async with gateway.client(value) as client:
                frozen = await client.get(path)
            assert (frozen.status_code, frozen.json()["error"]["code"]) == (
                503,
                "organization_moving",
            )
            assert frozen.headers["retry-after"] == "1"
        async with gateway.client(key.value) as client:
            assert (await client.get("/v1/models")).is_success
    with pytest.raises(OrganizationMoving):
        await pair.org.project("by the operator")
    rows = await pair.old.database.fetch_all(
        """
        SELECT verdict
          FROM (SELECT * FROM ledger_entries WHERE organization_id = $1 LIMIT 1) e,
               ledger_admit_one(
                   (e.organization_id, $2::uuid, now(), now() + interval '1 h', 0, e.project_id,
                    e.api_key_id, e.model, 0, false)::ledger_hold, $2, false)
        """,
        pair.organization_id,
        time_ordered_uuid(),
    )
    assert [row["verdict"] for row in rows] == [6]


async def test_a_freeze_ends_by_itself_and_cannot_be_released_then(
    pair: Pair, tmp_path: Path
) -> None:
    folder = MoveFolder(tmp_path / "move")
    await pair.export(folder)
    await mover.receive(pair.new, folder, _ignore)
    async with pair.old.database.transaction() as tx:
        await tx.execute("UPDATE organizations SET frozen_until = clock_timestamp()")
        await tx.execute("UPDATE accounts SET frozen_until = clock_timestamp()")

    with pytest.raises(MoveConflict, match="Export it again"):
        await mover.release(pair.old, folder, _ignore)
    with pytest.raises(DocumentUnusable, match="missing"):
        await mover.activate(pair.new, folder, _ignore)
    await pair.org.project("after the freeze")

    # A new export replaces the copy that was never activated.
    await pair.export(folder)
    await mover.receive(pair.new, folder, _ignore)
    await mover.release(pair.old, folder, _ignore)
    await mover.activate(pair.new, folder, _ignore)
    await assert_conserved(pair.new.database)


async def test_a_cancelled_move_leaves_the_organization_where_it_was(
    pair: Pair, tmp_path: Path
) -> None:
    folder = MoveFolder(tmp_path / "move")
    await pair.export(folder)
    await mover.receive(pair.new, folder, _ignore)

    await mover.cancel(pair.new, pair.organization_id)
    await mover.cancel(pair.old, pair.organization_id)

    with pytest.raises(MoveConflict):
        await mover.release(pair.old, folder, _ignore)
    await pair.org.project("served again")
    left = await _models(pair.new, pair.tenant)
    assert left.json()["error"]["code"] == "organization_moved"


async def test_what_does_not_fit_is_refused_and_stores_nothing(pair: Pair, tmp_path: Path) -> None:
    folder = MoveFolder(tmp_path / "move")
    await pair.export(folder)
    with pytest.raises(WrongDestination):
        await mover.receive(pair.old, folder, _ignore)
    grants = tmp_path / "move" / "credit_grants.jsonl"
    grants.write_text(grants.read_text().replace("1000000", "9000000"))

    with pytest.raises(DocumentUnusable, match="credit_grants"):
        await mover.receive(pair.new, folder, _ignore)

    digests = await _digests(pair.new.database, pair.organization_id)
    assert sum(digest.rows for digest in digests) == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "move").iterdir())
