"""Health checks: who is believed to answer, without any call being made."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.backends.wire import (
    Answer,
    Upstream,
    cut_answer,
    json_answer,
    raw_answer,
    stalled_answer,
)
from tests.support.gateway import TIMEOUT_SECONDS
from tollhouse.backends.health import HealthChecks
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.replicas import Replicas
from tollhouse.backends.transport import Transport
from tollhouse.backends.types import BackendConfig, UpstreamRequest
from tollhouse.base.clock import HeldClock
from tollhouse.base.tasks import Tasks
from tollhouse.observability.metrics import BackendMetrics

Watch = Callable[..., Replicas]


@pytest.fixture
async def watch(transport: Transport, clock: HeldClock) -> AsyncIterator[Watch]:
    """Replicas that are checked in quick succession."""
    tasks = Tasks()
    running: list[HealthChecks] = []

    def watching(
        *upstreams: Upstream,
        every_seconds: float = 0.01,
        answer_seconds: float = TIMEOUT_SECONDS,
        path: str = "/health",
    ) -> Replicas:
        config = BackendConfig(
            name="checked",
            replicas=tuple(each.url for each in upstreams),
            replica_names=tuple(each.name for each in upstreams),
            health_path=path,
        )
        replicas = Replicas(config, clock, BackendMetrics("checked"))
        checks = HealthChecks(
            config,
            transport,
            replicas,
            every_seconds=every_seconds,
            answer_seconds=answer_seconds,
        )
        checks.start(tasks)
        running.append(checks)
        return replicas

    yield watching
    for checks in running:
        await checks.stop()
    assert await tasks.drain(deadline_seconds=TIMEOUT_SECONDS) == 0


async def test_all_are_believed_before_the_first_check(watch: Watch, upstream: Upstream) -> None:
    upstream.health(json_answer({}, status=503))

    assert watch(upstream, every_seconds=TIMEOUT_SECONDS).is_ready("m")


@pytest.mark.parametrize("status", [200, 204, 301, 401, 404, 405, 429])
async def test_whoever_answers_is_believed_to_be_well(
    watch: Watch, upstream: Upstream, status: int
) -> None:
    """Not every server has a health route, so that only a failure says something."""
    upstream.health(raw_answer(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode()))

    replicas = watch(upstream)
    await upstream.checks(4)

    assert replicas.is_ready("m")


@pytest.mark.parametrize(
    "answer", [json_answer({}, status=500), json_answer({}, status=503), cut_answer()]
)
async def test_two_failed_checks_take_a_replica_out_and_one_good_one_brings_it_back(
    watch: Watch, upstream: Upstream, answer: Answer
) -> None:
    replicas = watch(upstream)
    await upstream.checks(2)
    assert replicas.is_ready("m")

    upstream.health(answer)
    # Twice as many as it takes: the client repeats what it finds cut off.
    await upstream.checks(7)
    assert not replicas.is_ready("m")

    upstream.health(json_answer({}))
    await upstream.checks(3)
    assert replicas.is_ready("m")


async def test_a_replica_that_does_not_answer_in_time_is_not_well(
    watch: Watch, upstream: Upstream
) -> None:
    upstream.health(stalled_answer())

    replicas = watch(upstream, answer_seconds=0.05)
    await upstream.checks(4)

    assert not replicas.is_ready("m")


async def test_one_healthy_replica_is_enough_and_gets_the_calls(
    watch: Watch, upstream: Upstream, other_upstream: Upstream
) -> None:
    upstream.health(json_answer({}, status=503))

    replicas = watch(upstream, other_upstream)
    await upstream.checks(4)

    requests = [
        UpstreamRequest(path="/", body=b"", affinity=b"session-%d" % number) for number in range(20)
    ]
    acquired = [replicas.acquire(request, is_bounded=True) for request in requests]
    assert {replica.url for replica in acquired} == {other_upstream.url}
    assert replicas.is_ready("m")


async def test_the_path_begins_at_the_host(watch: Watch, upstream: Upstream) -> None:
    watch(upstream, path="/ready?deep=1")
    await upstream.checks(1)

    assert upstream.checked[0].target == "/ready?deep=1"
    assert "authorization" not in upstream.checked[0].headers


async def test_a_backend_checks_from_its_start_to_its_stop(
    transport: Transport, clock: HeldClock, upstream: Upstream
) -> None:
    backend = OpenAiBackend(
        BackendConfig(name="checked", replicas=(upstream.url,), replica_names=(upstream.name,)),
        transport,
        clock,
    )
    tasks = Tasks()

    backend.start(tasks)
    await upstream.checks(1)
    await backend.stop()

    assert await tasks.drain(deadline_seconds=TIMEOUT_SECONDS) == 0
