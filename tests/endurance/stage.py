"""A service with several workers, and servers of its own around it that may be restarted."""

import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from tests.endurance.generations import GenerationLog
from tests.faults.server import own_server
from tests.storage.cluster import Cluster
from tests.support.deployment import MODEL, TAKES, model
from tests.support.gateway import settings_for
from tests.support.judge import ScriptedJudge, running_judge
from tests.support.judged_deployment import judged_by
from tests.support.processes import REPOSITORY, Service, running_service
from tests.support.redis_server import RedisServer, running_redis
from tests.support.upstream import running_upstream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.app import connect
from tollhouse.serving.worker import DEFAULT_APPLICATION
from tollhouse.settings import DatabaseSettings, RedisSettings, Settings
from tollhouse.storage.database import Database

TOTAL_SECONDS: Final = 5.0
JUDGE_SECONDS: Final = 3.0
VERDICT_SECONDS: Final = 60.0
"""No content is sent twice, so that the cache grows until its first verdicts are this old: with the
usual 600 s for most of the time before a long run is measured, and its table even later."""
VERIFY_SECONDS_MAX: Final = 600.0
SAMPLES: Final = "ENDURANCE_SAMPLES"
"""The environment variable that names the folder for samples of the workers."""

UNRESOLVED = """
    SELECT count(*) FILTER (WHERE phase = 0) - count(*) FILTER (WHERE phase = 1)
      FROM ledger_entries
     WHERE organization_id = ANY($1)
"""
"""Counts the holds of organizations that have no end yet."""


@dataclass(frozen=True, kw_only=True)
class EnduranceStage:
    """Everything that a long run needs."""

    service: Service
    settings: Settings
    database: Database
    cluster: Cluster
    redis: RedisServer
    upstream: ScriptedUpstream
    judge: ScriptedJudge
    log: GenerationLog

    def workers(self) -> list[int]:
        """Return the process IDs of the workers that live."""
        supervisor = self.service.process.pid
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text("ascii")
        return [int(pid) for pid in children.split()]


def _settings(cluster: Cluster, redis: RedisServer, upstream: str, **server: object) -> Settings:
    backend = {"replicas": [upstream], "takes": TAKES, "total_seconds": TOTAL_SECONDS}
    return msgspec.structs.replace(
        settings_for(cluster.url, **server),
        database=DatabaseSettings(url=cluster.url, pool_size=5, admin_pool_size=2),
        redis=RedisSettings(url=redis.url),
        backends={"scripted": backend},
        models={MODEL: model()},
    )


def _patient(settings: Settings) -> Settings:
    """Return settings for statements that verify the entries of hours."""
    database = msgspec.structs.replace(settings.database, statement_seconds=VERIFY_SECONDS_MAX)
    return msgspec.structs.replace(settings, database=database)


@asynccontextmanager
async def running_stage(
    folder: Path, *, application: str = DEFAULT_APPLICATION, **server: object
) -> AsyncGenerator[EnduranceStage]:
    """Yield a service that is ready; `server` are settings of its section."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(own_server())
        redis = stack.enter_context(running_redis())
        upstream = await stack.enter_async_context(running_upstream())
        upstream.seen = log = GenerationLog()
        judge = await stack.enter_async_context(running_judge(ScriptedJudge()))
        settings = _settings(cluster, redis, upstream.base_url, **server)
        settings = judged_by(
            settings,
            judge.base_url,
            deadline_seconds=JUDGE_SECONDS,
            verdict_seconds=VERDICT_SECONDS,
        )
        database = await connect(_patient(settings))
        stack.push_async_callback(database.close)
        environment = {
            **os.environ,
            "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}",
            SAMPLES: str(folder),
        }
        service = await stack.enter_async_context(
            running_service(settings, folder, environment=environment, application=application)
        )
        yield EnduranceStage(
            service=service,
            settings=settings,
            database=database,
            cluster=cluster,
            redis=redis,
            upstream=upstream,
            judge=judge,
            log=log,
        )
