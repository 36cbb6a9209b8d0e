"""Organizations that attack, and what they owe in the end."""

import asyncio
from dataclasses import dataclass, replace

from tests.hostile.clients import LOOK_EVERY_SECONDS
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.policies import CONTENT, new_policy
from tollhouse.base.ids import GrantId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.base.policies import Mode
from tollhouse.ledger import service as ledger
from tollhouse.ledger import verification
from tollhouse.ledger.types import GrantKind
from tollhouse.settings import Settings
from tollhouse.storage.database import Database

CREDIT = PicoUsd(100 * 10**12)
NO_CREDIT = PicoUsd(0)
SETTLE_SECONDS_MAX = 10.0

_RESERVED = "SELECT reserved_pico FROM accounts WHERE organization_id = $1"
_RESOLVED = """
    SELECT output_tokens
      FROM ledger_entries
     WHERE organization_id = $1 AND phase = 1
     ORDER BY output_tokens
"""
_ADMITTED = "SELECT count(*) FROM ledger_entries WHERE organization_id = $1 AND phase = 0"


@dataclass(frozen=True, kw_only=True)
class Customer:
    """An organization with a project's key and an Admin key."""

    org: OrganizationFixture
    key: str
    admin_key: str

    async def forbid(self, word: str, mode: Mode) -> None:
        """Publish a policy about both directions that the scripted judge understands."""
        content = replace(CONTENT, rule=f'Does it say "{word}"?', mode=mode)
        await new_policy(self.org, ("publish",), content=content)

    async def admitted(self) -> int:
        """Count the requests that were ever admitted."""
        rows = await self.org.database.fetch_all(_ADMITTED, self.org.organization_id)
        return rows[0][0]

    async def charged_tokens(self) -> list[int]:
        """Return the output tokens charged for each resolved request, fewest first."""
        rows = await self.org.database.fetch_all(_RESOLVED, self.org.organization_id)
        return [int(row["output_tokens"]) for row in rows]

    async def reserved(self) -> int:
        rows = await self.org.database.fetch_all(_RESERVED, self.org.organization_id)
        return int(rows[0]["reserved_pico"]) if rows else 0

    async def is_settled(self) -> bool:
        """Return whether no hold is left."""
        return await self.admitted() == len(await self.charged_tokens()) and (
            await self.reserved() == 0
        )

    async def assert_settled(
        self, delivered: list[int], *, seconds_max: float = SETTLE_SECONDS_MAX
    ) -> None:
        """No hold is left, and every request was charged for at least what its caller received.

        Callers and entries are not known by name: the largest is compared with the largest.
        """
        try:
            async with asyncio.timeout(seconds_max):
                while not await self.is_settled():  # noqa: ASYNC110 - nothing announces it
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
        except TimeoutError:
            held = f"{await self.admitted()} admitted, {await self.charged_tokens()} charged"
            message = f"after {seconds_max} s something is still held: {held}"
            raise AssertionError(message) from None
        charged = (await self.charged_tokens())[::-1]
        received = sorted((tokens for tokens in delivered if tokens), reverse=True)
        pairs = zip(received, charged, strict=False)
        assert len(received) <= len(charged), (received, charged)
        assert all(tokens <= paid for tokens, paid in pairs), (received, charged)
        assert await verification.verify(self.org.database, self.org.organization_id) == []


async def new_customer(
    database: Database, settings: Settings, *, credit: PicoUsd = CREDIT, mode: Mode | None = None
) -> Customer:
    """Make an organization; with a policy if `mode` says so."""
    org = await new_organization_fixture(database)
    if credit:
        async with database.mutation(org.authority()) as tx:
            await ledger.grant(
                tx,
                grant_id=GrantId(time_ordered_uuid()),
                kind=GrantKind.PROMOTIONAL,
                amount=credit,
                reason="to be spent",
            )
    key = await org.project_key(await org.project())
    admin_key = await org.admin_key()
    customer = Customer(org=org, key=key.value, admin_key=admin_key.value)
    if mode is not None:
        await customer.forbid("forbidden", mode)
    return customer
