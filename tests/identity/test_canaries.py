"""No secret is repeated: not in logs, metrics, answers, the audit log or a dump."""

import base64
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.identity import canary_run
from tests.identity.canary_run import BODY_BYTES_MAX, HEADER_BYTES_MAX, Run
from tests.identity.dumps import dump
from tests.identity.proxy import proxied
from tests.support.organization_fixture import new_organization_fixture
from tests.support.processes import running_service
from tollhouse.settings import Settings
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

STATUSES = {400, 401, 403, 404, 405, 408, 409, 413, 415, 431, 503}
"""Every way to fail that this version has, except our own bugs."""


@dataclass(frozen=True)
class Evidence:
    """What is left when the service has ended."""

    run: Run
    log: str
    metrics: str
    audit: str
    dump: str

    @property
    def failures(self) -> str:
        return "\n".join(f"{answer.headers}{answer.text}" for answer in self.run.failures)


def _bounded(settings: Settings, database_url: str) -> Settings:
    return replace(
        settings,
        database=replace(settings.database, url=database_url),
        server=replace(
            settings.server,
            body_bytes_max=BODY_BYTES_MAX,
            body_seconds=5.0,
            header_bytes_max=HEADER_BYTES_MAX,
        ),
    )


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def evidence(
    settings: Settings,
    database: Database,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Evidence]:
    folder: Path = tmp_path_factory.mktemp("service")
    org = await new_organization_fixture(database)
    admin = await org.admin_key()
    server = urlsplit(settings.database.url)
    assert server.hostname is not None
    password = f"canary{secrets.token_hex(20)}"
    async with proxied(server.hostname, server.port or 5432) as proxy:
        url = f"postgresql://root:{password}@127.0.0.1:{proxy.port}{server.path}"
        async with (
            running_service(_bounded(settings, url), folder) as service,
            service.client(admin.value) as client,
        ):
            run = Run(service, org, client)
            run.secret("Admin key", admin.value)
            run.secret("password of the database", password)
            run.secret("master secret", settings.secrets.master)
            await canary_run.succeed(run)
            await canary_run.fail_at_the_door(run)
            await canary_run.fail_on_the_body(run)
            await canary_run.fail_on_the_wire(run)
            await canary_run.fail_without_database(run, proxy)
            metrics = await service.metrics()
            assert await service.stop() == 0
    async with database.transaction() as tx:
        rows = await tx.fetch_all("SELECT * FROM audit_log")
    yield Evidence(
        run=run,
        log=service.log(),
        metrics=metrics,
        audit="\n".join(str(dict(row)) for row in rows),
        dump=await dump(settings.database.url),
    )


def _forms(text: str) -> Iterator[str]:
    """The ways in which a text can hide in another."""
    yield text
    yield text.encode().hex()
    yield base64.b64encode(text.encode()).decode().rstrip("=")
    yield quote(text, safe="")


def found_in(texts: dict[str, str], place: str) -> list[str]:
    """Which of them stand there, in any form and in any case."""
    lowered = place.lower()
    return [
        name
        for name, text in texts.items()
        if any(form.lower() in lowered for form in _forms(text))
    ]


async def test_every_way_to_fail_was_taken(evidence: Evidence) -> None:
    """Otherwise the tests below would prove less than they say."""
    assert {answer.status_code for answer in evidence.run.failures} == STATUSES
    assert len(evidence.run.secrets) > 40
    for text in ("request", "task_failed", "draining"):
        assert f'"{text}"' in evidence.log
    assert "project_api_key.rotate" in evidence.audit
    assert "COPY public.idempotency_records" in evidence.dump
    assert "tollhouse_http_requests_total{" in evidence.metrics


@pytest.mark.guarantee("T39")
async def test_no_secret_is_in_the_log(evidence: Evidence) -> None:
    assert found_in(evidence.run.secrets | evidence.run.sent, evidence.log) == []


@pytest.mark.guarantee("T39")
async def test_no_secret_is_in_the_metrics(evidence: Evidence) -> None:
    assert found_in(evidence.run.secrets | evidence.run.sent, evidence.metrics) == []


@pytest.mark.guarantee("T39")
async def test_no_secret_is_in_the_body_or_the_headers_of_a_failure(evidence: Evidence) -> None:
    """The name of an unknown field is told to who sent it: that is what the answer is for."""
    assert found_in(evidence.run.secrets, evidence.failures) == []


@pytest.mark.guarantee("T39")
async def test_no_secret_is_in_the_audit_log(evidence: Evidence) -> None:
    assert found_in(evidence.run.secrets | evidence.run.sent, evidence.audit) == []


@pytest.mark.guarantee("T39")
async def test_no_secret_is_in_a_dump_of_the_database(evidence: Evidence) -> None:
    """An idempotency key that was used is data, like the name of a resource."""
    assert found_in(evidence.run.secrets, evidence.dump) == []
    assert found_in(evidence.run.sent, evidence.dump) == ["idempotency key"]
