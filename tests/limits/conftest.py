"""One database, one gateway and one Redis per module; Redis is emptied before each test."""

from collections.abc import Iterator

import pytest

from tests.support.redis_server import RedisServer, running_redis
from tests.support.shared_gateway import (
    database,
    database_url,
    gateway,
    org,
    other_org,
    settings,
)

__all__ = ["database", "database_url", "gateway", "org", "other_org", "settings"]


@pytest.fixture(scope="module")
def redis_of_module() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


@pytest.fixture
def redis_server(redis_of_module: RedisServer) -> RedisServer:
    with redis_of_module.client() as client:
        client.flushall()
    return redis_of_module
