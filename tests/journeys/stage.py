"""Where SDKs meet the gateway: one that serves, one that is broken, and a key for every refusal."""

import asyncio
import contextlib
import io
import json
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from tests.support import databases
from tests.support.deployment import EVERYTHING, MODEL, Deployment, customer_of, model, offering
from tests.support.gateway import running_gateway, settings_for
from tests.support.limits import set_limit
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.policies import new_policy
from tests.support.upstream import running_upstream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.app import connect
from tollhouse.base.ids import policy_id_text
from tollhouse.base.traffic import TrafficLimits
from tollhouse.limits.types import LimitScope
from tollhouse.settings import Settings
from tollhouse.settings.sections import CompatibilitySettings

ROOT = Path(__file__).parents[2]
PLAIN_MODEL = "example/plain"
IMPATIENT_MODEL = "example/impatient"
NOTHING: dict[str, object] = {name: [] for name in EVERYTHING}
OWNED_BY = "example"
CREATED = 1_700_000_000
BODY_BYTES_MAX = 65_536
DRIVER_SECONDS_MAX = 600.0
BOUNDS = TrafficLimits(requests_per_minute=1_000, tokens_per_minute=1_000_000)


@dataclass(frozen=True)
class Told:
    """What a driver wrote, and how many requests of each check the gateway saw."""

    lines: list[dict[str, Any]]
    requests: Counter[str]


@dataclass(frozen=True)
class Stage:
    """`facts` is what a driver gets to know."""

    facts: dict[str, Any]

    async def play(self, *command: str | Path) -> Told:
        """Run a driver to its end."""
        with request_lines() as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=ROOT,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(DRIVER_SECONDS_MAX):
                    written, failed = await process.communicate(json.dumps(self.facts).encode())
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        assert process.returncode == 0, failed.decode()
        return Told([json.loads(line) for line in written.splitlines()], counted(log))


@contextlib.contextmanager
def request_lines() -> Generator[io.StringIO]:
    """The gateway's own log of requests; the event loop that serves them is this one."""
    logger, log = logging.getLogger("tollhouse.requests"), io.StringIO()
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        with contextlib.redirect_stderr(log):
            yield log
    finally:
        logger.setLevel(level)


def counted(log: io.StringIO) -> Counter[str]:
    lines = [json.loads(line) for line in log.getvalue().splitlines() if line.startswith("{")]
    return Counter(line.get("client_request_id", "") for line in lines)


def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    """One model that has everything, one that has nothing, one whose backend gets no time."""
    models = {
        MODEL: model(owned_by=OWNED_BY, created=CREATED),
        PLAIN_MODEL: model(**NOTHING),
        IMPATIENT_MODEL: model(backend="impatient", **NOTHING),
    }
    deployment = offering(settings, upstream.base_url, models=models, counts_tokens_by="messages")
    impatient = {"replicas": [upstream.base_url], "first_event_seconds": 0.2, "total_seconds": 0.5}
    return msgspec.structs.replace(
        deployment,
        backends=deployment.backends | {"impatient": impatient},
        compatibility=CompatibilitySettings(accepts_own_answers=True),
    )


@asynccontextmanager
async def open_stage(template: str) -> AsyncGenerator[Stage]:
    async with (
        running_upstream() as upstream,
        databases.temporary(template=template) as url,
        databases.temporary(template=template) as broken_url,
    ):
        settings = offered(settings_for(url, body_bytes_max=BODY_BYTES_MAX), upstream)
        broken_settings = offered(settings_for(broken_url), upstream)
        async with (
            running_gateway(settings) as gateway,
            running_gateway(broken_settings) as broken,
            organization(settings) as rich,
            organization(settings) as poor,
            organization(broken_settings) as unlucky,
        ):
            deployment = await customer_of(gateway, upstream, rich)
            broken_shop = await customer_of(broken, upstream, unlucky)
            await break_down(broken_url)
            yield Stage(await facts(deployment, poor, broken_shop))


@asynccontextmanager
async def organization(settings: Settings) -> AsyncGenerator[OrganizationFixture]:
    database = await connect(settings)
    yield await new_organization_fixture(database)
    await database.close()


async def break_down(database_url: str) -> None:
    """Whoever selects a policy meets what nobody expected."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("ALTER TABLE policies RENAME COLUMN state TO gone")
    await connection.close()


async def facts(
    deployment: Deployment, poor: OrganizationFixture, broken: Deployment
) -> dict[str, Any]:
    org, project = deployment.org, deployment.project
    paused = await new_policy(org, ("publish", "pause"))
    bounded = await org.project_key(project)
    exhausted = await org.project_key(project)
    narrow = await org.project_key(project)
    for key, limits in (
        (bounded, BOUNDS),
        (exhausted, TrafficLimits(tokens_per_minute=1)),
        (narrow, TrafficLimits(requests_per_minute=1)),
    ):
        await set_limit(org, limits, scope=LimitScope.KEY, scope_id=key.key.id)
    return {
        "base_url": deployment.gateway.base_url,
        "broken_base_url": broken.gateway.base_url,
        "model": MODEL,
        "plain_model": PLAIN_MODEL,
        "hasty_model": IMPATIENT_MODEL,
        "unknown_model": "example/unknown",
        "models": [MODEL, PLAIN_MODEL, IMPATIENT_MODEL],
        "owned_by": OWNED_BY,
        "created": CREATED,
        "paused_policy": policy_id_text(paused.id),
        "requests_per_minute": BOUNDS.requests_per_minute,
        "tokens_per_minute": BOUNDS.tokens_per_minute,
        "keys": {
            "sound": deployment.key.value,
            "admin": deployment.admin.value,
            "unknown": deployment.key.value[:-1]
            + ("a" if deployment.key.value[-1] != "a" else "b"),
            "poor": (await poor.project_key(await poor.project())).value,
            "reader": (await org.project_key(project, ("models:read",))).value,
            "bounded": bounded.value,
            "broken": broken.key.value,
            "exhausted": exhausted.value,
            "narrow": narrow.value,
        },
    }
