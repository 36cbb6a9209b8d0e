"""Text that attacks SQL is data, in every place where a caller can put text."""

import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import asyncpg
import httpx2
import pytest
import pytest_asyncio

import tollhouse
from tests.identity.stage import Stage, path_of, set_stage
from tests.identity.table import BODIES, QUERIES, ROWS, Row
from tests.support import seeds
from tests.support.gateway import Gateway
from tollhouse.storage.database import Database

TEXTS_PER_PLACE = int(os.environ.get("TOLLHOUSE_HOSTILE_TEXTS", "1"))
TEXTS = (
    *("'", '"', "\\", "\\'", "%", "_", "$1", "$$", "--", "/*", ";", "NULL", "%s", "{0}", ":id"),
    *("' OR '1'='1", "' OR 1=1 --", '" OR ""="', "1 OR 1=1", "admin'--", "') OR ('a'='a"),
    "'; DROP TABLE organizations CASCADE; --",
    "'; UPDATE accounts SET settled_pico = 0; --",
    "' UNION SELECT digest FROM key_directory --",
    "'||(SELECT pg_sleep(30))||'",
    "1;SELECT pg_sleep(30)",
    "E'\\x27'; SELECT pg_sleep(30); --",
    "' AND (SELECT count(*) FROM pg_catalog.pg_class) > 0 --",
    "\u02bc OR 1=1",
    "\uff07; DROP TABLE projects; --",
)
ANSWER_SECONDS_MAX = 20.0
"""Less than a text would make the database sleep."""
UNJUDGED = 503
SOURCE = Path(tollhouse.__file__).parent
PATTERN_SEARCH = re.compile(r"\bI?LIKE\b(?! \w+ INCLUDING)(?! %I INCLUDING)|\bSIMILAR TO\b|~\*? \$")

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage(gateway: Gateway, database: Database) -> Stage:
    return await set_stage(gateway, database)


def with_text(body: object, text: str) -> Iterator[Any]:
    """Yield the body with the text in place of each of its texts."""
    match body:
        case dict():
            for name, value in cast("dict[str, Any]", body).items():
                yield from ({**body, name: changed} for changed in with_text(value, text))
        case list():
            yield from (
                [changed] for each in cast("list[Any]", body) for changed in with_text(each, text)
            )
        case str():
            yield text
        case _:
            return


def requests(row: Row, stage: Stage, text: str) -> Iterator[dict[str, Any]]:
    """Yield requests of one operation, each with the text in one place."""
    body: Any = BODIES.get(row.id)
    if row.needs_model:
        body = {"model": "example/model-a", "messages": [{"role": "user", "content": "Hello."}]}
    query = QUERIES.get(row.id, {})
    path = path_of(row, stage.targets)
    for changed in with_text(body, text):
        yield {"url": path, "json": changed, "params": query}
    sound = {"json": body, "params": query}
    for name in ("after", "project_id", *query):
        yield {"url": path, **sound, "params": query | {name: text}}
    for name, target in stage.targets.items():
        if f"{{{name}}}" in row.path or ("{api_key_id}" in row.path and name.endswith("key_id")):
            yield {"url": path.replace(target, quote(text, safe="")), **sound}
    if text.isascii():
        for header in ("Idempotency-Key", "X-Session-Id", "Authorization"):
            yield {"url": path, **sound, "headers": {header: f"{text}12345678"}}


async def rows_of(database_url: str, stage: Stage) -> dict[str, int]:
    """How many rows each table has of another organization, but for those of a job."""
    connection = await asyncpg.connect(database_url)
    tables = await connection.fetch(
        """
        SELECT c.oid::regclass::text AS name
          FROM pg_class c
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organization_id'
         WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
           AND c.relnamespace = 'public'::regnamespace
           AND c.relname <> 'ledger_verifications'
        """
    )
    counts = {
        table["name"]: await connection.fetchval(
            f"SELECT count(*) FROM {table['name']} WHERE organization_id = $1",  # noqa: S608
            stage.foreign.organization_id,
        )
        for table in tables
    }
    await connection.close()
    return counts


@pytest.mark.guarantee("T27")
async def test_no_statement_searches_by_a_pattern() -> None:
    """So that a `%` from a caller is a character like any other."""
    found = [
        path.name for path in SOURCE.rglob("*.py") if PATTERN_SEARCH.search(path.read_text("utf-8"))
    ]

    assert PATTERN_SEARCH.search("WHERE name ILIKE $1")
    assert found == []


@pytest.mark.guarantee("T16")
async def test_text_that_attacks_sql_is_data_wherever_it_is_sent(
    stage: Stage, database_url: str
) -> None:
    before = await rows_of(database_url, stage)
    chance = seeds.chance()
    async with stage.gateway.client() as client:
        for row in ROWS:
            for text in chance.sample(TEXTS, min(TEXTS_PER_PLACE, len(TEXTS))):
                for request in requests(row, stage, text):
                    await assert_is_data(client, stage, row, request)

    assert len(before) > 10
    assert await rows_of(database_url, stage) == before


async def assert_is_data(
    client: httpx2.AsyncClient, stage: Stage, row: Row, request: dict[str, Any]
) -> None:
    """The answer is no failure, comes in time, and shows a name as it was sent."""
    headers = {
        "Authorization": f"Bearer {stage.key('right', row)}",
        "Idempotency-Key": secrets.token_hex(8),
        **request.pop("headers", {}),
    }
    answer = await client.request(
        row.method, headers=headers, timeout=ANSWER_SECONDS_MAX, **request
    )

    is_unjudged = answer.status_code == UNJUDGED and answer.json()["error"]["code"] == "no_judge"
    assert answer.status_code < 500 or is_unjudged, (row.id, request)
    if answer.is_success and row.id in {"createProject", "createPolicy", "editProject"}:
        assert answer.json()["name"] == request["json"]["name"]
