"""What must be true of money after every test."""

from collections.abc import Collection

from tests.ledger import independent_verifier
from tollhouse.base.ids import OrganizationId
from tollhouse.ledger import verification
from tollhouse.storage.database import Database


async def assert_conserved(database: Database, *, fallbacks: Collection[str] = ()) -> None:
    """Every balance, counter and report row follows from grants and entries, by both verifiers."""
    rows = await database.fetch_all("SELECT organization_id FROM accounts ORDER BY 1")
    for row in rows:
        organization_id = OrganizationId(row["organization_id"])
        assert await verification.verify(database, organization_id) == []
    assert await independent_verifier.faults(database, fallbacks=fallbacks) == []
