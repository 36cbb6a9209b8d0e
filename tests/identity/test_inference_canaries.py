"""What inference is told in confidence is repeated nowhere: prompts, answers and credentials."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.hostile.customers import new_customer
from tests.identity.canary_run import canary
from tests.identity.dumps import dump
from tests.identity.test_canaries import found_in
from tests.support.collector import Collector, collecting
from tests.support.deployment import MODEL, chat, customer_of, model, offering
from tests.support.judge import Fault, ScriptedJudge, running_judge
from tests.support.judged_deployment import BODIES, CHAT, judged_by
from tests.support.organization_fixture import new_organization_fixture
from tests.support.processes import Service, running_service
from tests.support.upstream import running_upstream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Mode
from tollhouse.settings import OtelSettings, Settings
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAIN, HASTY = "example/plain", "example/hasty"
COUNTING, FORBIDDEN = "/v1/messages/count_tokens", "forbidden"
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
JUDGED: dict[Mode, list[tuple[int, str, Fault | None]]] = {
    Mode.MONITORING: [(200, "", None), (200, FORBIDDEN, None), (200, "", Fault.ERROR_500)],
    Mode.ENFORCING: [(200, "", None), (403, FORBIDDEN, None), (503, "", Fault.ERROR_500)],
}
"""Status, what a policy forbids in the prompt, and how the judge fails."""


@dataclass(frozen=True)
class Evidence:
    keys: dict[str, str]
    answers: list[httpx2.Response]
    collector: Collector
    log: str
    metrics: str
    dump: str

    @property
    def failures(self) -> list[httpx2.Response]:
        return [answer for answer in self.answers if not answer.is_success]


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


def _content(**script: object) -> str:
    return json.dumps({"script": {"text": SAID, **script}}) + f"\n{PROMPT}"


async def _ask(service: Service, key: str, cases: list[Any]) -> list[httpx2.Response]:
    """Send every case whole and streamed."""
    answers: list[httpx2.Response] = []
    async with service.client(key) as client:
        for status, name, script in cases:
            for stream in (False, True):
                body = chat(_content(**script), stream=stream, temperature=0.5) | {"model": name}
                answer = await client.post(CHAT, json=body)
                assert answer.status_code == status, answer.text
                answers.append(answer)
    assert SAID in answers[0].text or not answers[0].is_success
    return answers


async def _ask_everywhere(service: Service, key: str) -> list[httpx2.Response]:
    """Ask every endpoint for an answer and for one that fails, and for a count."""
    async with service.client(key) as client:
        answers = [
            await client.post(path, json=body(_content(**script), stream=stream))
            for path, body in BODIES.items()
            for script in ({}, {"status": 500})
            for stream in (False, True)
        ]
        said = [{"role": "user", "content": _content()}]
        answers.append(await client.post(COUNTING, json={"model": MODEL, "messages": said}))
    assert Counter(answer.status_code for answer in answers) == {200: 7, 502: 6}
    return answers


async def _ask_judged(
    service: Service, key: str, mode: Mode, judge: ScriptedJudge
) -> list[httpx2.Response]:
    """Ask every endpoint under a policy, whole and streamed."""
    answers: list[httpx2.Response] = []
    async with service.client(key) as client:
        for status, forbidden, fault in JUDGED[mode]:
            judge.fails = lambda _, fault=fault: fault
            for path, body in BODIES.items():
                for stream in (False, True):
                    content = f"{_content()} {forbidden} {fault}"
                    answer = await client.post(path, json=body(content, stream=stream))
                    assert answer.status_code == status, answer.text
                    answers.append(answer)
    return answers


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def evidence(
    settings: Settings,
    database: Database,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Evidence]:
    folder = tmp_path_factory.mktemp("service")
    org, poor_org = [await new_organization_fixture(database) for _ in range(2)]
    poor = (await poor_org.project_key(await poor_org.project())).value
    with collecting(Collector()) as collector:
        async with running_upstream() as upstream, running_judge(ScriptedJudge()) as judge:
            traced = replace(
                judged_by(_offered(settings, upstream, folder), judge.base_url),
                otel=OtelSettings(endpoint=collector.url),
            )
            async with running_service(traced, folder) as service:
                rich = (await customer_of(service, upstream, org)).key.value
                answers = await _ask(service, poor, [(402, MODEL, {})])
                answers += await _ask_everywhere(service, rich)
                for mode in JUDGED:
                    customer = await new_customer(database, settings, mode=mode)
                    answers += await _ask_judged(service, customer.key, mode, judge)
                # Last, because some of these open the backend's breaker.
                answers += await _ask(service, rich, CASES)
                metrics = await service.metrics()
                assert await service.stop() == 0
            told = [exchange.headers.get("authorization") for exchange in upstream.seen]
            assert f"Bearer {CREDENTIAL}" in told
    yield Evidence(
        keys={"key": rich[8:-4], "key without credit": poor[8:-4]},
        answers=answers,
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
    request_ids = [answer.headers["x-request-id"] for answer in evidence.answers]

    assert len(evidence.collector.spans()) == len(evidence.answers)
    assert {each.status_code for each in evidence.failures} == {402, 403, 422, 501, 502, 503, 504}
    for place in (evidence.log, evidence.dump, "".join(map(str, evidence.collector.received))):
        assert [each for each in request_ids if each not in place] == []
    assert MODEL in evidence.metrics
