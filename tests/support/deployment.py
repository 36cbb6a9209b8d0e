"""A gateway in front of a scripted upstream, with a customer who has credit."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2
import msgspec

from tests.identity.waiting import until
from tests.support.gateway import running_gateway
from tests.support.organization_fixture import HeldAdminKey, HeldProjectKey, OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.ids import GrantId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import Credit, GrantKind
from tollhouse.projects.types import Project
from tollhouse.settings import Settings

CREDIT = PicoUsd(1_000_000_000_000)
PROMPT_PICO_USD = 1_000_000
CACHED_PICO_USD = 250_000
COMPLETION_PICO_USD = 2_000_000
MODEL = "example/model-a"
EVERYTHING: dict[str, Any] = {
    "features": [
        *("cache_salt", "functions", "json_mode", "prediction", "prompt_cache_retention"),
        *("prompt_logprobs", "reasoning", "reasoning_budget", "service_tier"),
        *("structured_outputs", "tools", "verbosity", "web_search"),
    ],
    "sampling_parameters": [
        *("temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias"),
        *("n", "seed", "stop", "logprobs", "top_logprobs"),
    ],
}

TAKES = ["cache_salt", "continuous_usage_stats", "prompt_cache_key"]


MESSAGES_MODEL: dict[str, Any] = {
    "features": ["reasoning", "structured_outputs", "tools"],
    "sampling_parameters": ["temperature", "top_p", "stop"],
}
"""What a model on a backend that speaks Messages can have."""


def model(**fields: object) -> dict[str, Any]:
    """A model that has everything, at prices that can be told apart."""
    return {
        "backend": "scripted",
        "pricing": {
            "prompt": "0.000001",
            "completion": "0.000002",
            "input_cache_read": "0.00000025",
        },
        "context_length": 8192,
        "max_output_length": 4096,
        "tokenizer": "bytes",
        "upstream_model": "upstream-name",
        **EVERYTHING,
        **fields,
    }


def offering(
    settings: Settings,
    *replicas: str,
    models: dict[str, dict[str, Any]] | None = None,
    **backend: object,
) -> Settings:
    """The same settings with a backend on these replicas and one model, or several."""
    return msgspec.structs.replace(
        settings,
        backends={"scripted": {"replicas": list(replicas), "takes": TAKES, **backend}},
        models={MODEL: model()} if models is None else models,
    )


class Door(Protocol):
    """Where customers come in: a gateway on the test's own loop, or a service of processes."""

    @property
    def base_url(self) -> str: ...

    def client(self, key: str | None = None) -> httpx2.AsyncClient: ...


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Everything that a journey needs."""

    gateway: Door
    upstream: ScriptedUpstream
    org: OrganizationFixture
    project: Project
    key: HeldProjectKey
    admin: HeldAdminKey

    def customer(self) -> httpx2.AsyncClient:
        """A client with the project's key."""
        return self.gateway.client(self.key.value)

    def administrator(self) -> httpx2.AsyncClient:
        """A client with an Admin key that may do everything."""
        return self.gateway.client(self.admin.value)

    async def credit(self) -> Credit:
        async with self.org.database.transaction() as tx:
            return await ledger.credit(tx, self.org.organization_id)

    async def leave_credit(self, amount: int) -> None:
        """Take back all but so much of what was granted."""
        org = self.org
        async with org.database.mutation(org.authority()) as tx:
            await ledger.grant(
                tx,
                grant_id=GrantId(time_ordered_uuid()),
                kind=GrantKind.CORRECTION,
                amount=PicoUsd(amount - CREDIT),
                reason="too much",
            )

    async def admitted(self) -> int:
        """How many requests were ever admitted."""
        return await self._entries(phase=0)

    async def settled(self, requests: int) -> Credit:
        """The account once nothing is held and so many requests are resolved."""
        credit: Credit | None = None

        async def is_settled() -> bool:
            nonlocal credit
            resolved = await self._entries(phase=1)
            credit = await self.credit()
            return resolved == requests and credit.reserved_pico_usd == 0

        await until(is_settled)
        assert credit is not None
        return credit

    async def _entries(self, *, phase: int) -> int:
        rows = await self.org.database.fetch_all(
            "SELECT count(*) FROM ledger_entries WHERE organization_id = $1 AND phase = $2",
            self.org.organization_id,
            phase,
        )
        return rows[0][0]

    async def record(self, request_id: str) -> dict[str, Any]:
        """What the activity says of a request, once it is written."""
        found: dict[str, Any] = {}

        async def is_written() -> bool:
            path = f"/manage/v1/organization/requests/{request_id}"
            async with self.administrator() as client:
                answer = await client.get(path)
            found.update(answer.json())
            return answer.is_success

        await until(is_written)
        return found


def chat(content: str = "Say something.", **fields: object) -> dict[str, Any]:
    """The body of a chat completion."""
    return {"model": MODEL, "messages": [{"role": "user", "content": content}], **fields}


async def customer_of(
    gateway: Door, upstream: ScriptedUpstream, org: OrganizationFixture
) -> Deployment:
    """A customer with credit in a gateway that is already open."""
    async with org.database.mutation(org.authority()) as tx:
        await ledger.grant(
            tx,
            grant_id=GrantId(time_ordered_uuid()),
            kind=GrantKind.PROMOTIONAL,
            amount=CREDIT,
            reason="to be spent",
        )
    project = await org.project()
    return Deployment(
        gateway=gateway,
        upstream=upstream,
        org=org,
        project=project,
        key=await org.project_key(project),
        admin=await org.admin_key(),
    )


@asynccontextmanager
async def open_deployment(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> AsyncGenerator[Deployment]:
    """Open with the settings as they are; `offering` puts something on the shelf."""
    async with running_gateway(settings) as gateway:
        yield await customer_of(gateway, upstream, org)
