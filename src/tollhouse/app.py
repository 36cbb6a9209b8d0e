"""The composition root: settings in, an ASGI application out. Only this module knows all parts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tollhouse.activity import recorder, retention
from tollhouse.activity.recorder import Recorder
from tollhouse.api import errors
from tollhouse.api.admin_permits import AdminPermits
from tollhouse.api.body import Receive, Send
from tollhouse.api.body_quota import BodyQuota
from tollhouse.api.body_reader import BodyConcurrency, BodyReader
from tollhouse.api.edge import Edge, Scope
from tollhouse.api.errors import Presentation
from tollhouse.api.house import EdgeBounds, House
from tollhouse.api.router import Route
from tollhouse.api.routes import ROUTES as GIVEN_ROUTES
from tollhouse.base.clock import Clock, SystemClock
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import InstanceId, RequestId, time_ordered_uuid
from tollhouse.base.quotas import OrganizationQuotas
from tollhouse.base.tasks import Tasks, repeated
from tollhouse.catalog import rules as catalog
from tollhouse.console import files as console_files
from tollhouse.console.site import Site
from tollhouse.contract.errors import ErrorBody, ErrorShape
from tollhouse.decisions import recorder as decisions_recorder
from tollhouse.decisions import retention as decisions_retention
from tollhouse.decisions.recorder import DecisionRecorder
from tollhouse.documentation import error_pages
from tollhouse.documentation.site import ErrorPages
from tollhouse.inference import assembly
from tollhouse.inference.allowance import HeldBytes, HoldingBounds
from tollhouse.inference.assembly import Ground, Inference
from tollhouse.inference.courts import judge_config
from tollhouse.inference.pipeline import Patience
from tollhouse.judging.fitting import objection_of
from tollhouse.keys import last_used, pepper_versions
from tollhouse.keys import service as keys
from tollhouse.keys.directory import KeyDirectory
from tollhouse.keys.last_used import LastUsed
from tollhouse.keys.secrets import Peppers
from tollhouse.ledger import alerts, reaper
from tollhouse.ledger import partitions as ledger_partitions
from tollhouse.limits import limiter
from tollhouse.limits.limiter import Limiter
from tollhouse.manage.routes import ROUTES as MANAGE_ROUTES
from tollhouse.observability import bound_metrics, metrics
from tollhouse.observability.tracing import traces_to
from tollhouse.policies.sets import at_most
from tollhouse.reports.cursors import Cursors
from tollhouse.settings import Settings, load
from tollhouse.storage import (
    idempotency,
    instances,
    leases,
    master_secrets,
    partitions,
    revisions,
)
from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.errors import DatabaseUnavailable
from tollhouse.storage.leases import Job
from tollhouse.storage.master_secrets import MasterSecrets
from tollhouse.storage.partitions import DailyTable
from tollhouse.storage.sealing import Sealer

logger = logging.getLogger("tollhouse.app")

ROUTES: tuple[Route, ...] = GIVEN_ROUTES + MANAGE_ROUTES
PARSING_THREADS = 2
PURGE_EVERY_SECONDS = 600.0
ALERTS_EVERY_SECONDS = 10.0
STOPPING_SECONDS = 5.0
BACKGROUND_SHARE = 4
"""Records and other work beside requests use at most this part of the inference pool."""
POLICY_SHARE = 4
"""Policies are read by at most this part of the inference pool, so that admission has the rest."""
REPORT_SHARE = 2
"""Reports use at most this part of the Admin pool, so that changes do not wait for them."""


class Application:
    """One worker's application, not made of a bad catalog. Serves from `startup` to `shutdown`."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._catalog = catalog.parse(settings.backends, settings.models, settings.judge)
        self._clock = clock or SystemClock()
        self._tasks = Tasks()
        self._calls = Tasks()
        self._loops: list[asyncio.Task[None]] = []
        self._instance_id = InstanceId(time_ordered_uuid())
        self._parsing_pool = ThreadPoolExecutor(PARSING_THREADS, "parsing")
        self._buffers = HeldBytes(
            HoldingBounds(
                request_max=settings.inference.buffer_request_bytes,
                worker_max=settings.inference.buffer_worker_bytes,
            )
        )
        self._body_quota = BodyQuota(settings.server.bodies_bytes_max)
        self._sites = (
            Site(console_files.read(console_files.BUILT), self._clock),
            ErrorPages(error_pages.read(), self._clock),
        )
        self.is_ready = False

    async def startup(self) -> None:
        """Connect, refuse a wrong schema or wrong peppers, and begin the background work."""
        self._database = await connect(self._settings)
        try:
            self._admin_database = await connect_admin(self._settings)
            try:
                await self._start()
            except BaseException:
                await self._admin_database.close()
                raise
        except BaseException:
            await self._database.close()
            raise

    async def _start(self) -> None:
        await revisions.refuse_other_schema(self._database)
        database = self._settings.database
        self._background_database = self._database.share(
            connections_max=max(1, database.pool_size // BACKGROUND_SHARE)
        )
        self._report_database = self._admin_database.share(
            connections_max=max(1, database.admin_pool_size // REPORT_SHARE),
            statement_seconds=database.report_statement_seconds,
        )
        await self._make_days()
        self._peppers = Peppers(self._settings.secrets.pepper_bytes())
        self._last_used = LastUsed()
        self._limiter = Limiter(
            self._clock,
            self._tasks,
            redis_url=self._settings.redis.url,
            answer_seconds=self._settings.redis.answer_seconds,
        )
        self._masters = MasterSecrets(self._settings.secrets.master_bytes())
        self._sealer = Sealer(self._admin_database, self._masters)
        self._traces = traces_to(self._settings.otel.endpoint)
        self._recorder = Recorder(
            self._background_database,
            waiting_records_max=self._settings.activity.waiting_records_max,
            export=None if self._traces is None else self._traces.export,
        )
        self._decisions = DecisionRecorder(
            self._background_database,
            waiting_decisions_max=self._settings.policies.waiting_decisions_max,
        )
        await self._enter()
        self._inference = await self._assemble()
        self._edge = Edge(self._house(), ROUTES)
        self._begin()
        self.is_ready = True

    def end_streams(self) -> None:
        """A stop has waited long enough: end by an event what is still being streamed."""
        self._inference.pipeline.end_streams()

    async def shutdown(self) -> None:
        """Called when no request is left: end the background work and the pool."""
        self.is_ready = False
        for loop in self._loops:
            loop.cancel()
        await self._inference.stop_watching()
        # What callers left behind first, since it is settled by the others.
        await self._calls.drain(deadline_seconds=STOPPING_SECONDS)
        await self._tasks.drain(deadline_seconds=STOPPING_SECONDS)
        await self._inference.close()
        await self._recorder.flush(deadline_seconds=STOPPING_SECONDS)
        await self._decisions.flush(deadline_seconds=STOPPING_SECONDS)
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)
        try:
            await self._last_used.flush(self._database)
            async with self._database.transaction() as tx:
                await instances.leave(tx, self._instance_id)
        except DatabaseUnavailable:
            logger.warning("shutdown_without_database")
        await self._limiter.close()
        await self._admin_database.close()
        await self._database.close()
        self._parsing_pool.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a server that speaks of its own life is listened to as well."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        for site in self._sites:
            if site.is_at(scope["raw_path"]):
                await site(scope, receive, send)
                return
        await self._edge(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.startup()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.shutdown()
        await send({"type": "lifespan.shutdown.complete"})

    async def _assemble(self) -> Inference:
        settings = self._settings
        ground = Ground(
            clock=self._clock,
            tasks=self._tasks,
            calls=self._calls,
            database=self._database,
            instance_id=self._instance_id,
            secret=settings.secrets.master.encode(),
            own_batches_max=max(1, settings.database.pool_size // 2),
            policy_reads_max=max(1, settings.database.pool_size // POLICY_SHARE),
            pending_evaluations_max=settings.quotas.pending_evaluations,
            counted_bytes_per_minute=settings.quotas.counted_bytes_per_minute,
        )
        return Inference(
            self._catalog,
            ground,
            price_revision=await assembly.price_revision(self._database, self._catalog),
            patience=Patience(
                head_wait_seconds=settings.inference.head_wait_seconds,
                admission=timedelta(seconds=settings.inference.admission_seconds),
            ),
            buffers=self._buffers,
            note=self._decisions.note,
            show=self._show,
        )

    def _show(self, failure: GatewayError, request_id: RequestId) -> ErrorBody:
        return errors.body_of(
            failure,
            Presentation(
                request_id=request_id,
                shape=ErrorShape.OPENAI,
                documentation_url=self._settings.documentation_url,
            ),
        )

    def _house(self) -> House:
        settings = self._settings
        return House(
            clock=self._clock,
            tasks=self._tasks,
            database=self._admin_database,
            report_database=self._report_database,
            admin_permits=AdminPermits(
                at_once_max=settings.server.admin_requests_per_organization,
                wait_seconds=settings.server.admin_wait_seconds,
            ),
            directory=KeyDirectory(
                self._database,
                self._peppers,
                self._clock,
                self._tasks,
                believed_keys_max=settings.keys.believed_keys_max,
            ),
            last_used=self._last_used,
            peppers=self._peppers,
            sealer=self._sealer,
            cursors=Cursors(self._masters),
            limiter=self._limiter,
            recorder=self._recorder,
            catalog=self._catalog,
            is_backend_ready=self._inference.offers.is_backend_ready,
            pipeline=self._inference.pipeline,
            buffers=self._buffers,
            token_counter=self._inference.token_counter,
            body_quota=self._body_quota,
            body_reader=BodyReader(
                self._parsing_pool,
                BodyConcurrency(
                    per_key_max=settings.server.bodies_per_key_max,
                    per_organization_max=settings.server.bodies_per_organization_max,
                ),
            ),
            bounds=EdgeBounds(
                body_bytes_max=settings.server.body_bytes_max,
                body_seconds=settings.server.body_seconds,
            ),
            customer_header=settings.keys.customer_header.lower().encode(),
            record_days=settings.idempotency.record_days,
            quotas=OrganizationQuotas(
                projects=settings.quotas.projects,
                project_keys=settings.quotas.project_keys,
                admin_keys=settings.quotas.admin_keys,
                policies=settings.quotas.policies,
            ),
            default_threshold_basis_points=settings.policies.default_threshold_basis_points,
            objection=at_most(
                objection_of(judge_config(self._catalog)), settings.quotas.policies_in_effect
            ),
            trials=self._inference.trials,
            is_sandbox=settings.ledger.is_sandbox,
            keep_alive_seconds=settings.inference.keep_alive_seconds,
            documentation_url=settings.documentation_url,
        )

    async def _enter(self) -> None:
        """Be known as a live worker before the first key can be made or asked for."""
        async with self._database.transaction() as tx:
            await pepper_versions.register(tx, self._peppers)
            await master_secrets.register(tx, self._masters)
            await self._heartbeat(tx)

    def _begin(self) -> None:
        self._inference.start()
        self._repeat("heartbeat", self._beat, instances.HEARTBEAT_SECONDS)
        self._repeat("last-used", self._flush_last_used, last_used.FLUSH_EVERY_SECONDS)
        self._repeat("limits", self._limiter.tend, limiter.TEND_EVERY_SECONDS)
        self._repeat("activity", self._recorder.write, recorder.WRITE_EVERY_SECONDS)
        self._repeat("decisions", self._decisions.write, decisions_recorder.WRITE_EVERY_SECONDS)
        for job in self._jobs():
            work = leases.run_while_held(self._database, job, self._instance_id)
            self._loops.append(self._tasks.start(f"job-{job.name}", work))

    def _jobs(self) -> tuple[Job, ...]:
        """What some worker does, one at a time."""
        reap_seconds = reaper.REAP_EVERY.total_seconds()
        keep_seconds = partitions.KEEP_EVERY.total_seconds()
        return (
            Job(name="purge", every_seconds=PURGE_EVERY_SECONDS, run=self.purge),
            Job(name="alerts", every_seconds=ALERTS_EVERY_SECONDS, run=self._notice_alerts),
            Job(name="reaper", every_seconds=reap_seconds, run=self.reap),
            Job(name="partitions", every_seconds=keep_seconds, run=self.keep_partitions),
        )

    def _repeat(self, name: str, work: Callable[[], Awaitable[None]], every_seconds: float) -> None:
        turns = repeated(name, work, every_seconds=every_seconds)
        self._loops.append(self._tasks.start(name, turns))

    async def _beat(self) -> None:
        """Whoever cannot be known as alive is not ready: keys are minted without asking it."""
        metrics.database_connections_in_use(self._database.connections_in_use)
        bound_metrics.bodies_held(self._body_quota.used_bytes)
        metrics.admin_database_connections_in_use(self._admin_database.connections_in_use)
        try:
            async with self._database.transaction() as tx:
                await self._heartbeat(tx)
        except BaseException:
            self.is_ready = False
            raise
        self.is_ready = True

    async def _heartbeat(self, tx: Transaction) -> None:
        await instances.heartbeat(
            tx,
            self._instance_id,
            pepper_versions=self._peppers.versions,
            master_ids=self._masters.ids,
        )

    async def _flush_last_used(self) -> None:
        await self._last_used.flush(self._background_database)

    async def _notice_alerts(self) -> None:
        await alerts.notice(self._background_database)

    async def purge(self) -> None:
        """Forget what has outlived its time; idempotent, and done by one worker at a time."""
        now = self._clock.now()
        record_days = self._settings.idempotency.record_days
        await idempotency.purge(self._admin_database, now, record_days=record_days)
        await keys.purge_expired_secrets(self._admin_database, now)
        await self._sealer.destroy_old(now)
        await self._sealer.rewrap()
        await retention.remove_old_hours(self._admin_database, now)
        await decisions_retention.remove_old_sums(self._admin_database, now)

    async def reap(self) -> None:
        """Mark and decide the holds that nobody will settle."""
        await reaper.run(self._database)

    async def keep_partitions(self) -> None:
        """Make the days ahead, and let the oldest go."""
        await self._make_days()
        entry_days, record_days = (
            self._settings.ledger.entry_days,
            self._settings.activity.record_days,
        )
        await ledger_partitions.remove_old(self._admin_database, entry_days=entry_days)
        await retention.remove_old_days(self._admin_database, record_days=record_days)
        decision_days = self._settings.policies.decision_days
        await decisions_retention.remove_old_days(self._admin_database, decision_days=decision_days)

    async def _make_days(self) -> None:
        for table in DailyTable:
            await partitions.ensure(self._admin_database, table)


def from_environment() -> Application:
    """For servers that ask for a factory: `granian --interface asgi --factory`."""
    return Application(load())


async def connect_admin(settings: Settings) -> Database:
    """Open the pool of Admin routes, reports and maintenance."""
    return await Database.connect(
        settings.database.url,
        pool_size=settings.database.admin_pool_size,
        acquire_seconds=settings.database.acquire_seconds,
        statement_seconds=settings.database.admin_statement_seconds,
    )


async def connect(settings: Settings) -> Database:
    """Open the pool of inference."""
    return await Database.connect(
        settings.database.url,
        pool_size=settings.database.pool_size,
        acquire_seconds=settings.database.acquire_seconds,
        statement_seconds=settings.database.statement_seconds,
    )
