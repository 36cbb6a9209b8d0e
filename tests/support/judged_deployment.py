"""A deployment with policies: requests and answers are judged by a scripted judge."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import httpx2
import msgspec

from tests.identity.waiting import until
from tests.support.deployment import MODEL, Deployment, chat, offering, open_deployment
from tests.support.judge import ScriptedJudge, running_judge
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.ids import policy_id_text
from tollhouse.base.policies import Direction, Mode
from tollhouse.observability import registry
from tollhouse.policies.types import PolicyScope
from tollhouse.settings import Settings

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/compat/anthropic/v1/messages"
FALLING_BACK = "example/falling-back"
"""A model whose fallback is `MODEL`, and whose backend tells its usage at the end."""
_RECORDED = """
    SELECT coalesce(sum(cardinality(scores)), 0)
      FROM evaluations
     WHERE organization_id = $1
"""
_DROPPED = "tollhouse_policy_decisions_dropped_total{"


def judged_by(settings: Settings, *replicas: str, **judge: object) -> Settings:
    """The same settings with a judge on these replicas."""
    backends = settings.backends | {"judge": {"replicas": list(replicas)}}
    table: dict[str, Any] = {
        "backend": "judge",
        "model": "a-judge",
        "context_length": 32_000,
        "question_tokens_max": 8_000,
        **judge,
    }
    return msgspec.structs.replace(settings, backends=backends, judge=table)


def buffering(settings: Settings, request_bytes: int, worker_bytes: int = 2**28) -> Settings:
    """The same settings with these bounds on answers that wait."""
    inference = msgspec.structs.replace(
        settings.inference, buffer_request_bytes=request_bytes, buffer_worker_bytes=worker_bytes
    )
    return msgspec.structs.replace(settings, inference=inference)


def sending_at_once(settings: Settings, wait_seconds: float = 0.05) -> Settings:
    """The same settings with status lines that do not wait for a verdict."""
    inference = msgspec.structs.replace(
        settings.inference, head_wait_seconds=wait_seconds, keep_alive_seconds=wait_seconds
    )
    return msgspec.structs.replace(settings, inference=inference)


def response(content: str = "Say something.", **fields: object) -> dict[str, Any]:
    """The same request as `chat` makes, of the other operation."""
    return {"model": MODEL, "input": content, **fields}


def message(content: str = "Say something.", **fields: object) -> dict[str, Any]:
    """The same request as `chat` makes, in the form of Messages."""
    said = [{"role": "user", "content": content}]
    return {"model": MODEL, "max_tokens": 1_024, "messages": said, **fields}


BODIES = {CHAT: chat, RESPONSES: response, MESSAGES: message}
"""The operations that generate."""


@dataclass(frozen=True, kw_only=True)
class JudgedDeployment:
    """A deployment and its scripted judge."""

    deployment: Deployment
    judge: ScriptedJudge

    async def forbid(
        self,
        word: str,
        *,
        mode: Mode = Mode.ENFORCING,
        direction: Direction = Direction.BOTH,
        scope: PolicyScope = PolicyScope.ORGANIZATION,
        threshold_basis_points: int = 5_000,
        ends_answer_early: bool = False,
    ) -> str:
        """Publish a policy that the scripted judge understands; returns its ID."""
        content = replace(
            CONTENT,
            rule=f'Does it say "{word}"?',
            mode=mode,
            direction=direction,
            scope=scope,
            match_threshold_basis_points=threshold_basis_points,
            ends_answer_early=ends_answer_early,
        )
        policy = await new_policy(self.deployment.org, ("publish",), content=content)
        return policy_id_text(policy.id)

    async def send(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        """One request of the customer."""
        async with self.deployment.customer() as client:
            return await client.post(path, json=body)

    def answers(self, text: str, **script: object) -> None:
        """What the backend says from now on."""
        self.deployment.upstream.scripts.clear()
        self.deployment.upstream.queue(
            msgspec.convert({"text": text, **script}, UpstreamScript), times=None
        )

    @property
    def asked_of_backend(self) -> int:
        return len(self.deployment.upstream.seen)

    async def has_recorded_or_dropped(self, decisions: int, *, dropped_before: float) -> None:
        """Wait until the organization's decisions on record and those dropped since are so many."""
        org = self.deployment.org

        async def are_all_there() -> bool:
            rows = await org.database.fetch_all(_RECORDED, org.organization_id)
            return int(rows[0][0]) + decisions_dropped() - dropped_before == decisions

        await until(are_all_there)


class OpenJudged(Protocol):
    """Return a customer of the test's own in the module's gateway with these settings."""

    async def __call__(self, offered: Settings, **bounds: object) -> JudgedDeployment: ...


def judged_deployment_of(deployment: Deployment, judge: ScriptedJudge) -> JudgedDeployment:
    return JudgedDeployment(deployment=deployment, judge=judge)


@asynccontextmanager
async def open_judged_deployment(
    settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    judge: ScriptedJudge | None = None,
    **bounds: object,
) -> AsyncGenerator[JudgedDeployment]:
    """With bounds of the test's own."""
    async with running_judge(judge or ScriptedJudge()) as running:
        judged = judged_by(offering(settings, upstream.base_url), running.base_url, **bounds)
        async with open_deployment(judged, upstream, org) as deployment:
            yield judged_deployment_of(deployment, running)


def decisions_dropped() -> float:
    """For whatever reason, by all gateways of this process."""
    lines = registry.exposition(None).decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(_DROPPED))


def events_of(text: str) -> list[Any]:
    """What a stream says, without its comments."""
    lines = [line for line in text.splitlines() if line.startswith("data: ")]
    payloads = [line.removeprefix("data: ") for line in lines]
    return [payload if payload == "[DONE]" else json.loads(payload) for payload in payloads]
