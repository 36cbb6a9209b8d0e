"""An error that reaches its caller has no hold: SDKs retry at once and need the credit."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.judge import Fault
from tests.support.judged_deployment import BODIES, JudgedDeployment
from tollhouse.base.policies import Direction

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROUNDS = 20
ERROR = {"message": "The engine failed."}


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What the backend does, and whether a policy forbids "bread"."""

    script: dict[str, Any] = field(default_factory=lambda: {"text": "You will find bread there."})
    forbids_in: Direction | None = None
    judge_fails: bool = False

    async def prepare(self, judged: JudgedDeployment) -> str:
        """Return what to say so that it happens."""
        if self.forbids_in is not None:
            await judged.forbid("bread", direction=self.forbids_in)
        if self.judge_fails:
            judged.judge.fails = lambda _: Fault.LOW_COVERAGE
        return json.dumps({"script": self.script})


FAILURES = {
    "the backend refuses": Failure(script={"status": 400}),
    "the backend fails": Failure(script={"error": ERROR}),
    "the backend fails late": Failure(script={"error": ERROR, "error_after_events": 3}),
    "the request matches": Failure(forbids_in=Direction.REQUEST),
    "the answer matches": Failure(forbids_in=Direction.RESPONSE),
    "the judge fails": Failure(forbids_in=Direction.RESPONSE, judge_fails=True),
}


@pytest.mark.parametrize("path", [*BODIES])
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_nothing_is_reserved_when_an_error_is_received(
    judged: JudgedDeployment, path: str, failure: Failure, *, is_stream: bool
) -> None:
    content = await failure.prepare(judged)
    body = BODIES[path](content, stream=is_stream)

    async with judged.deployment.customer() as client:
        for _ in range(ROUNDS):
            answer = await client.post(path, json=body)
            credit = await judged.deployment.credit()

            assert '"error":{' in answer.text
            assert credit.reserved_pico_usd == 0
            # A sound answer closes the breaker of the replica.
            await client.post(path, json=BODIES[path]("Hi"))

    assert await judged.deployment.admitted() == 2 * ROUNDS
