"""A database per test, cloned from one that was migrated once."""

import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

SERVER_URL = os.environ.get("TOLLHOUSE_TEST_POSTGRES", "postgresql://root@127.0.0.1:5432")
MAINTENANCE_URL = f"{SERVER_URL}/postgres"


def url_of(name: str) -> str:
    return f"{SERVER_URL}/{name}"


def fresh_name() -> str:
    return f"tollhouse_test_{secrets.token_hex(6)}"


async def create(name: str, *, template: str = "template1") -> None:
    connection = await asyncpg.connect(MAINTENANCE_URL)
    try:
        await connection.execute(
            f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy'
        )
    finally:
        await connection.close()


async def drop(name: str) -> None:
    connection = await asyncpg.connect(MAINTENANCE_URL)
    try:
        await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    finally:
        await connection.close()


@asynccontextmanager
async def temporary(*, template: str = "template1") -> AsyncGenerator[str]:
    """Yields the URL of a database that is gone afterwards."""
    name = fresh_name()
    await create(name, template=template)
    try:
        yield url_of(name)
    finally:
        await drop(name)
