"""What inference is told in confidence is repeated nowhere: prompts, answers and credentials."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.identity.canary_run import canary
from tests.identity.dumps import dump
from tests.identity.test_canaries import found_in
from tests.support.collector import Collector, collecting
from tests.support.deployment import MODEL, chat, customer_of, model, offering
from tests.support.organization_fixture import new_organization_fixture
from tests.support.processes import Service, running_service
from tests.support.upstream import running_upstream
from tollhouse.keys.secrets import Peppers
from tollhouse.settings import OtelSettings, Settings
from tollhouse.storage.database import Database
from tollhouse.testing.upstream import ScriptedUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAIN, HASTY = "example/plain", "example/hasty"
PROMPT, SAID, CREDENTIAL = canary(), canary(), canary()
CASES: list[tuple[int, str, dict[str, Any]]] = [
    (200, MODEL, {}),
    (422, MODEL, {"status": 400}),
    (501, PLAIN, {}),
    (502, MODEL, {"status": 500}),
    (502, MODEL, {"cut": {"how": "close", "after": "request"}}),
    (503, MODEL, {"status": 429}),
    (504, HASTY, {"cut": {"how": "stall", "after": "request"}}),
]
"""Status, model and what the backend does."""


@dataclass(frozen=True)
class Evidence:
    keys: dict[str, str]
    failures: list[httpx2.Response]
    collector: Collector
    log: str
    metrics: str
    dump: str


def _offered(settings: Settings, upstream: ScriptedUpstream, folder: Path) -> Settings:
    path = folder / "credential"
    path.write_text(CREDENTIAL, encoding="utf-8")
    path.chmod(0o600)
    url = upstream.base_url
    models = {
        MODEL: model(),
        PLAIN: model(sampling_parameters=[]),
        HASTY: model(backend="hasty", features=[]),
    }
    offered = offering(settings, url, models=models, api_key_file=str(path))
    hasty = {"replicas": [url], "total_seconds": 0.5}
    return replace(offered, backends=offered.backends | {"hasty": hasty})


async def _ask(service: Service, key: str, cases: list[Any]) -> list[httpx2.Response]:
    """Send every case whole and streamed; return the answers that are failures."""
    answers: list[httpx2.Response] = []
    async with service.client(key) as client:
        for status, name, script in cases:
            content = json.dumps({"script": {"text": SAID, **script}}) + f"\n{PROMPT}"
            for stream in (False, True):
                body = chat(content, stream=stream, temperature=0.5) | {"model": name}
                answer = await client.post("/v1/chat/completions", json=body)
                assert answer.status_code == status, answer.text
                answers.append(answer)
    assert SAID in answers[0].text or not answers[0].is_success
    return [answer for answer in answers if not answer.is_success]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def evidence(
    settings: Settings,
    database: Database,
    peppers: Peppers,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Evidence]:
    folder = tmp_path_factory.mktemp("service")
    org, poor_org = [await new_organization_fixture(database, peppers) for _ in range(2)]
    poor = (await poor_org.project_key(await poor_org.project())).value
    with collecting(Collector()) as collector:
        async with running_upstream() as upstream:
            traced = replace(
                _offered(settings, upstream, folder), otel=OtelSettings(endpoint=collector.url)
            )
            async with running_service(traced, folder) as service:
                rich = (await customer_of(service, upstream, org)).key.value
                failures = await _ask(service, poor, [(402, MODEL, {})])
                failures += await _ask(service, rich, CASES)
                metrics = await service.metrics()
                assert await service.stop() == 0
            told = [exchange.headers.get("authorization") for exchange in upstream.seen]
            assert f"Bearer {CREDENTIAL}" in told
    yield Evidence(
        keys={"key": rich[8:-4], "key without credit": poor[8:-4]},
        failures=failures,
        collector=collector,
        log=service.log(),
        metrics=metrics,
        dump=await dump(settings.database.url),
    )


@pytest.mark.guarantee("T39")
async def test_nothing_told_in_confidence_is_in_logs_metrics_traces_failures_or_a_dump(
    evidence: Evidence,
) -> None:
    secrets = evidence.keys | {"prompt": PROMPT, "answer": SAID, "credential": CREDENTIAL}
    places = {
        "log": evidence.log,
        "metrics": evidence.metrics,
        "traces": "".join(map(str, evidence.collector.received)),
        "failures": "\n".join(f"{each.headers}{each.text}" for each in evidence.failures),
        "dump": evidence.dump,
    }

    found = {name: found_in(secrets, text) for name, text in places.items()}
    assert not any(found.values()), found


@pytest.mark.guarantee("T39")
async def test_every_request_is_in_the_log_the_traces_and_the_dump(evidence: Evidence) -> None:
    """Otherwise the test above would prove less than it says."""
    request_ids = [answer.headers["x-request-id"] for answer in evidence.failures]

    assert len(evidence.collector.spans()) == len(evidence.failures) + 2
    assert {each.status_code for each in evidence.failures} == {402, 422, 501, 502, 503, 504}
    for place in (evidence.log, evidence.dump, "".join(map(str, evidence.collector.received))):
        assert [each for each in request_ids if each not in place] == []
    assert MODEL in evidence.metrics
