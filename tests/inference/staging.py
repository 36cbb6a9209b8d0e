"""Projects in every state that a request can meet, behind one gateway."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import product
from uuid import UUID

import httpx2
import msgspec

from tests.support.deployment import MODEL, Deployment, chat, model, offering
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.limits import set_limit
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.money import PicoUsd
from tollhouse.base.traffic import TrafficLimits
from tollhouse.ledger import service as ledger
from tollhouse.ledger import types as money
from tollhouse.limits.types import LimitScope
from tollhouse.settings import Settings

Group = tuple[bool, bool, bool]
"""Whether a project is full, has used up its tokens, and has met its cap."""

PATH = "/v1/chat/completions"
BODY_BYTES_MAX = 65_536
IMPATIENT, LOCKED, SILENT = "example/impatient", "example/locked", "example/silent"
STALL = json.dumps({"script": {"cut": {"how": "stall", "after": 3}}})


def every_way_to_fail(settings: Settings, replica: str, *, silent_replica: str) -> Settings:
    """Models for each way to fail; nobody listens at the silent replica."""
    patient = offering(
        settings,
        replica,
        models={
            MODEL: model(),
            LOCKED: model(required_checks=["age"]),
            IMPATIENT: model(backend="impatient", features=[]),
            SILENT: model(backend="silent", features=[]),
        },
        idle_seconds=600.0,
        total_seconds=600.0,
    )
    server = msgspec.structs.replace(settings.server, body_bytes_max=BODY_BYTES_MAX)
    backends = {
        "impatient": {"replicas": [replica], "total_seconds": 0.2},
        "silent": {"replicas": [silent_replica]},
    }
    return msgspec.structs.replace(patient, backends=patient.backends | backends, server=server)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Keys by the group of their project and by what they may do."""

    deployment: Deployment
    client: httpx2.AsyncClient
    keys: dict[tuple[Group, str], str]


@asynccontextmanager
async def staged(deployment: Deployment) -> AsyncGenerator[Stage]:
    """A project for each group; those that are full or spent have a stream open meanwhile."""
    keys: dict[tuple[Group, str], str] = {}
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(deployment.gateway.client())
        for group in product((False, True), (False, True), (False, True)):
            project = await deployment.org.project()
            able = await deployment.org.project_key(project)
            powerless = await deployment.org.project_key(project, ("models:read",))
            keys[group, "able"], keys[group, "powerless"] = able.value, powerless.value
            await _limit(deployment, project.id, group)
            if group[0] or group[1]:
                await stack.enter_async_context(_open_stream(deployment, client, able.value))
            if group[2]:
                await _cap(deployment.org, project.id)
        yield Stage(
            deployment=deployment,
            client=client,
            keys=keys,
        )


async def _limit(deployment: Deployment, project_id: UUID, group: Group) -> None:
    """A bucket of one token lets one request pass, and is then empty for hours."""
    is_full, is_spent, _ = group
    if is_full or is_spent:
        permit = TrafficLimits(
            concurrent_requests=1 if is_full else None, tokens_per_minute=1 if is_spent else None
        )
        await set_limit(deployment.org, permit, scope=LimitScope.PROJECT, scope_id=project_id)


async def _cap(org: OrganizationFixture, project_id: UUID) -> None:
    place = money.CapId(
        scope=money.CapScope.PROJECT, scope_id=project_id, period=money.Period.LIFETIME
    )
    async with org.database.mutation(org.authority()) as tx:
        await ledger.set_cap(tx, place, limit_pico_usd=PicoUsd(1), alert_percent=80)


@asynccontextmanager
async def _open_stream(
    deployment: Deployment, client: httpx2.AsyncClient, key: str
) -> AsyncGenerator[None]:
    nth = 1 + sum(b"stall" in exchange.body for exchange in deployment.upstream.seen)
    headers = {"authorization": f"Bearer {key}"}
    body = chat(STALL, stream=True)
    async with client.stream("POST", PATH, json=body, headers=headers) as answer:
        assert answer.is_success
        exchange = await deployment.upstream.seen.arrival("stall", nth=nth)
        await exchange.stall()
        yield
        exchange.release()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await answer.aread()
