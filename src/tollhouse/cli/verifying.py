"""What `tollhouse ledger verify` and `tollhouse audit verify` do with each organization."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar
from uuid import UUID

from tollhouse.base.ids import OrganizationId
from tollhouse.cli import output, session
from tollhouse.cli.session import Session
from tollhouse.storage.database import Database, Transaction

PAGE_SIZE: Final = 1_000

T = TypeVar("T")
Update = Callable[[int, int], None]
"""Takes how many organizations are done, and of how many."""


class OrganizationPage(Protocol):
    """Reads organizations in the order of their IDs."""

    async def __call__(
        self, tx: Transaction, *, after: OrganizationId | None, limit: int
    ) -> list[OrganizationId]:
        """Return at most `limit` of them that come after one."""
        ...


def run(
    settings_path: Path, verify: Callable[[Session, Update], Awaitable[T]], *, as_json: bool
) -> T:
    """Run a verification in a session of its own, and show how far it is."""
    with output.progress_bars(as_json=as_json) as bars:
        task = bars.add_task("verifying", total=None)

        def update(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        return session.run(settings_path, lambda operator: verify(operator, update))


async def chosen(
    operator: Session, organization: UUID | None, page: OrganizationPage
) -> list[OrganizationId]:
    """Return the organization, or those of all pages."""
    if organization is not None:
        return [(await operator.organization(organization)).id]
    found: list[OrganizationId] = []
    while True:
        async with operator.database.transaction() as tx:
            more = await page(tx, after=found[-1] if found else None, limit=PAGE_SIZE)
        if not more:
            return found
        found += more


async def verify_each(
    operator: Session,
    organization_ids: Sequence[OrganizationId],
    verify: Callable[[Database, OrganizationId], Awaitable[T]],
    *,
    update: Update,
) -> list[T]:
    """Verify one organization after the other, and report the progress."""
    results: list[T] = []
    for done, organization_id in enumerate(organization_ids):
        update(done, len(organization_ids))
        results.append(await verify(operator.database, organization_id))
    return results
