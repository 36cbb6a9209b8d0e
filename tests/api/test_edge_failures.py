"""Our own bugs: told as such, logged once under the request's ID, and without what was sent."""

import asyncio
import logging
from typing import NoReturn

import asyncpg
import httpx2
import pytest

from tests.api.test_edge_envelope import PROJECTS, refusal
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.app import Application
from tollhouse.observability import registry
from tollhouse.observability.log import JsonFormatter
from tollhouse.settings import Settings

CANARY = "a canary in the body"


async def spoil(database_url: str, statement: str) -> None:
    """Break the schema under a running gateway, which then meets what it never expected."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(statement)
    await connection.close()


async def create(gateway: Gateway, org: OrganizationFixture) -> httpx2.Response:
    admin = await org.admin_key()
    async with gateway.client(admin.value) as client:
        return await client.post(
            PROJECTS, json={"name": CANARY}, headers={"Idempotency-Key": "creation-1"}
        )


def failures(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.getMessage() == "request_failed"]


async def test_an_unexpected_exception_is_500_in_the_usual_envelope(
    gateway: Gateway, org: OrganizationFixture, database_url: str
) -> None:
    await spoil(database_url, "ALTER TABLE idempotency_records RENAME TO gone")

    answer = await create(gateway, org)

    assert refusal(answer) == (500, "server_error")
    assert answer.json()["error"]["type"] == "server_error"
    assert "idempotency_records" not in answer.text


async def test_an_unexpected_exception_is_logged_once_under_its_request_id(
    gateway: Gateway, org: OrganizationFixture, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await spoil(database_url, "ALTER TABLE idempotency_records RENAME TO gone")

    answer = await create(gateway, org)

    (record,) = failures(caplog)
    line = JsonFormatter().format(record)
    assert record.levelname == "ERROR"
    assert "UndefinedTableError" in line
    assert answer.headers["x-request-id"] in line


async def test_what_was_sent_is_not_logged_even_if_the_database_repeats_it(
    gateway: Gateway, org: OrganizationFixture, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await spoil(database_url, "ALTER TABLE projects ADD CHECK (length(name) < 3)")

    answer = await create(gateway, org)

    (record,) = failures(caplog)
    line = JsonFormatter().format(record)
    assert refusal(answer) == (500, "server_error")
    assert "projects_name_check" in line
    assert CANARY not in line


async def test_the_gateway_serves_on_after_an_unexpected_exception(
    gateway: Gateway, org: OrganizationFixture, database_url: str
) -> None:
    await spoil(database_url, "ALTER TABLE idempotency_records RENAME TO gone")
    failed = await create(gateway, org)
    await spoil(database_url, "ALTER TABLE gone RENAME TO idempotency_records")

    served = await create(gateway, org)

    assert [failed.status_code, served.status_code] == [500, 200]
    assert "idempotent-replayed" not in served.headers


class Broken(Exception):
    """What sending fails with here."""


@pytest.mark.parametrize(
    ("failure", "status", "outcome"),
    [(Broken, 500, "failed"), (asyncio.CancelledError, 499, "client_error")],
    ids=["bug", "cancelled"],
)
async def test_an_answer_that_could_not_be_sent_is_counted(
    settings: Settings, failure: type[BaseException], status: int, outcome: str
) -> None:
    async def receive() -> NoReturn:
        raise AssertionError

    async def send(_: object) -> NoReturn:
        raise failure

    scope = {
        "type": "http",
        "method": "GET",
        "http_version": "1.1",
        "path": "/v1/models",
        "raw_path": b"/v1/models",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    labels = f'operation="listModels",outcome="{outcome}",status="{status}"'
    series = f"tollhouse_http_requests_total{{{labels}}} "
    application = Application(settings)
    edge = await application.startup()
    before = counted(series)
    with pytest.raises(failure):
        await edge(scope, receive, send)
    await application.shutdown()

    assert counted(series) == before + 1


def counted(series: str) -> float:
    lines = registry.exposition(None).decode().splitlines()
    return sum(float(line.removeprefix(series)) for line in lines if line.startswith(series))
