"""A worker is ready while it can say that it lives, and again when it can again."""

from tests.identity.waiting import until
from tests.support.gateway import Gateway
from tollhouse.storage.database import Database


async def test_a_worker_whose_heartbeat_fails_is_not_ready_until_it_works_again(
    gateway: Gateway, database: Database
) -> None:
    """The table is gone: no outage, but something that nobody has thought of."""

    async def is_ready() -> bool:
        return gateway.application.is_ready

    async def is_not_ready() -> bool:
        return not gateway.application.is_ready

    assert await is_ready()
    await database.fetch_all("ALTER TABLE instances RENAME TO hidden")
    await until(is_not_ready)
    await database.fetch_all("ALTER TABLE hidden RENAME TO instances")
    await until(is_ready)
