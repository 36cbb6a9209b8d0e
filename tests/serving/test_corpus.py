"""The whole corpus against both servers: no 5xx, no second answer, no truncated body processed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from tests.serving.applications import STALL_SECONDS_MAX
from tests.serving.corpus import (
    BODY_BYTES_MAX,
    CASES,
    CUT_SHORT,
    HEADER_BYTES_MAX,
    Case,
    Statuses,
    run_case,
)
from tests.serving.raw import Observation, Response
from tests.serving.servers import Server, granian, supervised

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONNECTIONS_MAX = 12
REFUSALS: dict[Statuses, str] = {(400,): "malformed_request", (431,): "request_headers_too_large"}

BOUNDS = f"""
workers = 1
header_seconds = {STALL_SECONDS_MAX}
header_bytes_max = {HEADER_BYTES_MAX}
body_seconds = {STALL_SECONDS_MAX}
body_bytes_max = {BODY_BYTES_MAX}
keep_alive_seconds = {STALL_SECONDS_MAX}
"""


class Run:
    """What one server made of every case."""

    def __init__(self, which: str, observations: dict[str, Observation], *, processed: int) -> None:
        self.which = which
        self.observations = observations
        self.processed = processed


def _expected(case: Case, which: str) -> Statuses:
    return case.bounded if which == "bounded" else case.granian


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["bounded", "granian"])
async def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Run]:
    server: AbstractAsyncContextManager[Server] = (
        supervised(tmp_path_factory.mktemp("corpus"), BOUNDS)
        if request.param == "bounded"
        else granian()
    )
    async with server as running:
        observations = await _observe_all(running.address, request.param)
        processed = (await running.get("/processed")).responses[0].json()["processed"]
    yield Run(request.param, observations, processed=processed)


async def _observe_all(address: tuple[str, int], which: str) -> dict[str, Observation]:
    room = asyncio.Semaphore(CONNECTIONS_MAX)

    async def observe(case: Case) -> Observation:
        async with room:
            return await run_case(address, case, answers=len(_expected(case, which)))

    observations = await asyncio.gather(*(observe(case) for case in CASES))
    return {case.name: seen for case, seen in zip(CASES, observations, strict=True)}


def _named(case: Case) -> str:
    return case.name.replace(" ", "_")


@pytest.mark.guarantee("T23")
@pytest.mark.parametrize("case", CASES, ids=_named)
async def test_a_case_ends_as_listed(run: Run, case: Case) -> None:
    seen = run.observations[case.name]

    reports: list[dict[str, Any]] = [
        response.json() for response in seen.responses if response.status == 200
    ]
    assert seen.statuses == _expected(case, run.which)
    assert seen.leftover == b""
    assert seen.statuses or seen.is_closed
    assert all(status < 500 for status in seen.statuses)
    assert [report["received"] for report in reports] == list(case.sizes[: len(reports)])
    assert all(report["path"] != "/smuggled" for report in reports)
    assert all("x-trailer" not in report["headers"] for report in reports)
    if run.which == "bounded" and case.bounded in REFUSALS:
        assert seen.is_closed
        _check_envelope(seen.responses[-1], code=REFUSALS[case.bounded])


def _check_envelope(answer: Response, *, code: str) -> None:
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["type"] == "invalid_request_error"
    assert error["request_id"] == answer.headers["x-request-id"] == str(UUID(error["request_id"]))
    assert answer.headers["connection"] == "close"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.guarantee("T23")
async def test_nothing_is_processed_that_was_not_answered(run: Run) -> None:
    """A body that was cut short would be counted here without having been answered."""
    answered = sum(seen.statuses.count(200) for seen in run.observations.values())

    assert len(CUT_SHORT) > 0
    assert run.processed == answered


async def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
