"""After every test that used a database, its money must add up."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.ledger import shared_books
from tests.ledger.invariants import assert_conserved
from tests.support.gateway import settings_for
from tollhouse.app import connect


@pytest.fixture(autouse=True)
def conserved(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that leaves a wrong ledger on purpose says so with the mark `tampers`."""
    is_tampered = request.node.get_closest_marker("tampers") is not None
    module = request.node.getparent(pytest.Module)
    is_checked_later = getattr(module.obj, "database", None) is shared_books.database
    if is_tampered or is_checked_later or "database" not in request.fixturenames:
        yield
        return
    url = request.getfixturevalue("database_url")
    yield
    # A loop of its own, which is made nobody else's: the database may be a whole module's.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(_assert_conserved(url))


async def _assert_conserved(url: str) -> None:
    database = await connect(settings_for(url))
    try:
        await assert_conserved(database)
    finally:
        await database.close()
