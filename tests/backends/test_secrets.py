"""The credential of a backend goes into one header, and nowhere else."""

import asyncio
import logging

import pytest

from tests.backends.conftest import API_KEY, Build
from tests.backends.wire import (
    Answer,
    Upstream,
    cut_answer,
    json_answer,
    raw_answer,
    stalled_answer,
    whole,
)
from tollhouse.backends.errors import BackendError
from tollhouse.backends.types import BackendConfig, UpstreamRequest
from tollhouse.observability.log import JsonFormatter

ASK = UpstreamRequest(path="/chat/completions", body=b"{}")

TELLTALE = "key {key} at http://{host}/v1, {host}, https://inner.example/x?y=1 says no"
FAULTS: list[Answer] = [
    cut_answer(),
    stalled_answer(),
    raw_answer(b"HTTP/1.1 nonsense\r\n\r\n"),
    raw_answer(whole(b"{", status=200)),
    *(json_answer({}, status=status) for status in (302, 400, 401, 403, 404, 429, 500, 503)),
]


def chain(failure: BaseException | None) -> list[BaseException]:
    return [] if failure is None else [failure, *chain(failure.__cause__)]


@pytest.mark.parametrize("answer", FAULTS)
async def test_no_failure_and_no_log_line_holds_the_credential(
    build: Build, upstream: Upstream, caplog: pytest.LogCaptureFixture, answer: Answer
) -> None:
    backend = build(upstream, total_seconds=0.5)
    upstream.answers(answer)

    with caplog.at_level(logging.DEBUG), pytest.raises(BackendError) as caught:
        await backend.complete(ASK)

    logging.getLogger("tollhouse.tested").warning("failed", exc_info=caught.value)
    lines = [JsonFormatter().format(line) for line in caplog.records]
    host = upstream.url.removeprefix("http://").removesuffix("/v1")
    assert API_KEY in upstream.received[0].headers["authorization"]
    assert not [line for line in lines if API_KEY in line]
    assert host not in caught.value.message
    assert not [link for link in chain(caught.value) if API_KEY in repr(vars(link))]


async def test_what_a_backend_tells_about_itself_is_hidden(
    build: Build, upstream: Upstream
) -> None:
    host = upstream.url.removeprefix("http://").removesuffix("/v1")
    said = TELLTALE.format(key=API_KEY, host=host)
    upstream.answers(json_answer({"error": {"message": said}}, status=400))

    with pytest.raises(BackendError) as caught:
        await build(upstream).complete(ASK)

    assert caught.value.message == (
        "The backend refused the request: key [hidden] at [hidden] [hidden], [hidden] says no"
    )


def test_a_configuration_does_not_show_its_credential() -> None:
    config = BackendConfig(
        name="b", replicas=("http://10.0.0.7/v1",), replica_names=("b-1",), api_key=API_KEY
    )

    assert API_KEY not in repr(config)


async def test_tasks_are_not_named_after_addresses(build: Build, upstream: Upstream) -> None:
    upstream.answers(stalled_answer())
    before = asyncio.all_tasks()
    asking = asyncio.create_task(build(upstream).complete(ASK), name="asking")
    await upstream.requests(1)

    names = {task.get_name() for task in asyncio.all_tasks() - before}
    asking.cancel()
    await asyncio.wait([asking])

    assert not [name for name in names if "127.0.0.1" in name]
