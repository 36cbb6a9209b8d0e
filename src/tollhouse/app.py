"""The composition root: builds all parts of one worker from the settings."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial

from tollhouse import pools
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.alerts.delivery import LOOK_AT_BACKENDS_EVERY_SECONDS, BackendWatch
from tollhouse.api import admin_routes, errors
from tollhouse.api import routes as given_routes
from tollhouse.api.access import AccessControl
from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.body import BodyBounds, BodyReader, Receive, Scope, Send
from tollhouse.api.body_quota import BodyQuota
from tollhouse.api.cross_origin import AsgiServer, allowing_origins
from tollhouse.api.edge import Edge, Recording
from tollhouse.api.handlers.models import ModelHandlers
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.router import Route, Router
from tollhouse.api.sending import ResponseSender
from tollhouse.api.unidentified_requests import UnidentifiedRequests
from tollhouse.base.clock import Clock, DatabaseClock
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.base.tasks import Tasks
from tollhouse.catalog import rules as catalog
from tollhouse.console import documentation
from tollhouse.console import files as console_files
from tollhouse.console.site import Site, StartPage
from tollhouse.console_access import ConsoleAccess
from tollhouse.decisions.recorder import DecisionRecorder
from tollhouse.evaluation import AnswerBuffers, judge_config, publication_check
from tollhouse.inference import assembly
from tollhouse.inference.assembly import EvaluationConfig, Inference, InferenceConfig
from tollhouse.inference.pipeline import Timeouts
from tollhouse.keys import directory
from tollhouse.keys.directory import KeyDirectory, LastUsed
from tollhouse.leased_jobs import leased_jobs
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.verifier import SHOW_EVERY, Verifier
from tollhouse.limits import limiter
from tollhouse.limits.limiter import Limiter
from tollhouse.manage import alert_routes
from tollhouse.manage import routes as manage_routes
from tollhouse.manage.alerts import AlertDestinations
from tollhouse.manage.policies import PublicationRules
from tollhouse.observability import bound_metrics, metrics
from tollhouse.observability.tracing import trace_contexts, traces_to
from tollhouse.policies.sets import at_most
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.pools import connect, connect_admin
from tollhouse.reports.cursors import Cursors
from tollhouse.settings import Settings, load
from tollhouse.storage import instances, leases, master_secrets, revisions
from tollhouse.storage import jobs as storage_jobs
from tollhouse.storage.buffered_writer import WRITE_EVERY_SECONDS
from tollhouse.storage.errors import DatabaseUnavailable
from tollhouse.storage.health_watch import LOOK_EVERY_SECONDS, HealthWatch, refuse_standby
from tollhouse.storage.heartbeat import Heartbeat
from tollhouse.storage.master_secrets import MasterSecrets
from tollhouse.storage.sealing import Sealer

logger = logging.getLogger("tollhouse.app")

PARSING_THREADS = 2
GAUGES_EVERY_SECONDS = 5.0
STOPPING_SECONDS = 5.0


class Application:
    """One worker's application. Raises if the catalog in the settings is not valid."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._catalog = catalog.parse(settings.backends, settings.models, settings.judge)
        self._database_clock = DatabaseClock()
        self._clock = clock or self._database_clock
        self._tasks = Tasks()
        self._calls = Tasks()
        self._instance_id = InstanceId(time_ordered_uuid())
        self._parsing_pool = ThreadPoolExecutor(PARSING_THREADS, "parsing")
        self._buffers = AnswerBuffers(
            request_max=settings.inference.buffer_request_bytes,
            worker_max=settings.inference.buffer_worker_bytes,
        )
        self._body_quota = BodyQuota(settings.server.bodies_bytes_max)
        self._sites = (
            StartPage(self._clock),
            Site(console_files.read(console_files.BUILT), self._clock),
            *documentation.sites(self._clock),
        )
        self._is_started = False

    @property
    def is_ready(self) -> bool:
        """Whether the worker can answer requests."""
        return self._is_started and self._heartbeat.is_alive

    async def startup(self) -> AsgiServer:
        """Connect, start the background work, and return the ASGI application.

        Raises if the schema or the master secret does not fit this version and its settings.
        """
        async with AsyncExitStack() as opened:
            self._database = await connect(self._settings)
            opened.push_async_callback(self._database.close)
            self._admin_database = await connect_admin(self._settings)
            opened.push_async_callback(self._admin_database.close)
            self._reports = pools.report_reads(self._admin_database, self._settings)
            opened.push_async_callback(self._reports.close)
            await refuse_standby(self._database)
            await revisions.refuse_other_schema(self._database)
            await self._start()
            self._close_pools = opened.pop_all().aclose
        return self._edge

    async def _start(self) -> None:
        self._background_database = pools.part_for_background(self._database, self._settings)
        await storage_jobs.make_partitions(self._admin_database)
        self._last_used = LastUsed()
        self._limiter = Limiter(
            self._clock,
            self._tasks,
            redis_url=self._settings.redis.url,
            answer_seconds=self._settings.redis.answer_seconds,
        )
        self._masters = MasterSecrets(self._settings.secrets.master_bytes())
        self._console = ConsoleAccess(
            self._settings, self._admin_database, self._masters, self._clock
        )
        self._sealer = Sealer(self._admin_database, self._masters)
        self._traces = traces_to(self._settings.otel.endpoint)
        waiting_max = self._settings.activity.waiting_records_max
        self._recorder = RequestRecorder(
            self._background_database,
            waiting_records_max=waiting_max,
            export=None if self._traces is None else self._traces.export,
        )
        self._unidentified = UnidentifiedRequests(
            self._background_database, self._recorder.gaps, waiting_records_max=waiting_max
        )
        self._decisions = DecisionRecorder(
            self._background_database,
            waiting_decisions_max=self._settings.policies.waiting_decisions_max,
        )
        self._heartbeat = Heartbeat(
            self._database,
            self._database_clock,
            self._instance_id,
            master_ids=self._masters.ids,
        )
        await self._limiter.renew_leases()
        await self._register()
        self._inference = await self._assemble()
        self._is_ready = self._inference.model_resolver.is_backend_ready
        edge = self._make_edge()
        self._edge = allowing_origins(edge, self._settings.server.cors_origins)
        self._start_background_work()
        self._is_started = True

    def end_streams(self) -> None:
        """End every open stream with an error event, because a stop has reached its deadline."""
        self._inference.pipeline.end_streams()

    async def shutdown(self) -> None:
        """End the background work and close the pools, after the last request has ended."""
        self._is_started = False
        await self._inference.stop_health_checks()
        # Calls whose callers left end first, since the other tasks settle them.
        await self._calls.drain(deadline_seconds=STOPPING_SECONDS)
        await self._tasks.drain(deadline_seconds=STOPPING_SECONDS)
        await self._inference.close()
        await self._unidentified.flush(deadline_seconds=STOPPING_SECONDS)
        await self._recorder.flush(deadline_seconds=STOPPING_SECONDS)
        await self._decisions.flush(deadline_seconds=STOPPING_SECONDS)
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)
        try:
            await self._last_used.flush(self._database)
            await self._heartbeat.leave()
        except DatabaseUnavailable:
            logger.warning("shutdown_without_database")
        await self._limiter.close()
        await self._console.close()
        await self._close_pools()
        self._parsing_pool.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or start and stop with the server (ASGI lifespan)."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
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
        database, pool_size = self._database, settings.database.pool_size
        policy_reads = pools.part_for_policies(database, settings)
        return Inference(
            self._catalog,
            InferenceConfig(
                secret=settings.secrets.master.encode(),
                price_revision=await assembly.price_revision(database, self._catalog),
                timeouts=Timeouts(
                    head_wait_seconds=settings.inference.head_wait_seconds,
                    admission=timedelta(seconds=settings.inference.admission_seconds),
                ),
                counted_bytes_per_minute=settings.quotas.counted_bytes_per_minute,
            ),
            EvaluationConfig(
                buffers=self._buffers,
                pending_per_organization_max=settings.quotas.pending_evaluations,
                record=self._decisions.record,
            ),
            clock=self._clock,
            calls=self._calls,
            batcher=Batcher(
                database, self._tasks, self._instance_id, own_batches_max=max(1, pool_size // 2)
            ),
            policy_snapshots=PolicySnapshots(policy_reads, self._tasks),
            render_error=partial(
                errors.stream_error_body, documentation_url=settings.documentation_url
            ),
        )

    def _routes(self) -> tuple[Route, ...]:
        settings = self._settings
        database = AdminDatabase(
            self._admin_database,
            self._clock,
            self._sealer,
            self._console.sessions,
            record_days=settings.idempotency.record_days,
        )
        quotas = settings.quotas.stored_objects()
        reports = ReportReader(
            self._reports,
            Cursors(self._masters),
            settings.exports.provider_name,
        )
        check = publication_check(judge_config(self._catalog))
        models = ModelHandlers(
            catalog=self._catalog, is_model_ready=self._inference.model_resolver.is_model_ready
        )
        given = given_routes.routes(
            models=models,
            token_counter=self._inference.token_counter,
            messages_under_v1=settings.compatibility.messages_under_v1,
            accepts_own_answers=settings.compatibility.accepts_own_answers,
        )
        given_admin = admin_routes.routes(database, reports, cell=settings.keys.cell, quotas=quotas)
        alerts = AlertDestinations(
            networks=settings.alerts.networks(),
            email_domains=settings.alerts.email_domains,
            sends_email=settings.alerts.smtp_host is not None,
            subscriptions_max=quotas.alert_subscriptions,
        )
        managed = manage_routes.routes(
            database,
            reports,
            cell=settings.keys.cell,
            quotas=quotas,
            publication=PublicationRules(
                default_threshold_basis_points=settings.policies.default_threshold_basis_points,
                check=at_most(check, settings.quotas.policies_in_effect),
            ),
            trials=self._inference.trials,
            models=models,
            is_sandbox=settings.ledger.is_sandbox,
        )
        return given + given_admin + managed + alert_routes.routes(database, alerts)

    def _make_edge(self) -> Edge:
        settings = self._settings
        server = settings.server
        directory = KeyDirectory(
            self._database,
            self._clock,
            self._tasks,
            cache_size=settings.keys.cache_size,
        )
        bounds = BodyBounds(
            bytes_max=server.body_bytes_max,
            seconds=server.body_seconds,
            per_key_max=server.bodies_per_key_max,
            per_organization_max=server.bodies_per_organization_max,
        )
        return Edge(
            Router(self._routes(), (self._console.site(directory), *self._sites)),
            clock=self._clock,
            access=AccessControl(
                directory,
                self._last_used,
                self._limiter,
                self._unidentified,
                self._console.sessions,
                customer_header=settings.keys.customer_header,
                cell=settings.keys.cell,
                session_headers=settings.inference.session_headers,
            ),
            bodies=BodyReader(self._parsing_pool, self._body_quota, bounds),
            pipeline=self._inference.pipeline,
            recording=Recording(
                record=self._recorder.record,
                trace_context=trace_contexts(
                    settings.otel.endpoint,
                    follows_callers=settings.otel.follows_callers,
                    sample_ratio=settings.otel.sample_ratio,
                ),
            ),
            sender=ResponseSender(
                self._buffers,
                self._clock,
                self._tasks,
                keep_alive_seconds=settings.inference.keep_alive_seconds,
            ),
            documentation_url=settings.documentation_url,
        )

    async def _register(self) -> None:
        """Register the worker and its secrets before the first key is created or looked up."""
        async with self._database.transaction() as tx:
            await master_secrets.register(tx, self._masters)
            await self._heartbeat.record(tx)

    def _start_background_work(self) -> None:
        self._inference.start(self._tasks)
        self._inference.oversee(self._background_database, self._instance_id, self._tasks)
        repeat = self._tasks.repeat
        flush_last_used = partial(self._last_used.flush, self._background_database)
        repeat("heartbeat", self._heartbeat.beat, instances.HEARTBEAT_SECONDS)
        repeat("gauges", self._set_gauges, GAUGES_EVERY_SECONDS)
        repeat("database-health", HealthWatch(self._admin_database).look, LOOK_EVERY_SECONDS)
        repeat("last-used", flush_last_used, directory.FLUSH_EVERY_SECONDS)
        repeat("limits", self._limiter.check_redis, limiter.CHECK_EVERY_SECONDS)
        repeat("activity", self._recorder.write, WRITE_EVERY_SECONDS)
        repeat("unidentified", self._unidentified.write, WRITE_EVERY_SECONDS)
        repeat("decisions", self._decisions.write, WRITE_EVERY_SECONDS)
        verifier = Verifier(self._admin_database, self._reports)
        repeat("ledger-verified", verifier.show, SHOW_EVERY.total_seconds())
        backends = BackendWatch(self._background_database, self._catalog.backends, self._is_ready)
        repeat("backend-alerts", backends.look, LOOK_AT_BACKENDS_EVERY_SECONDS)
        self.jobs = leased_jobs(
            self._settings,
            self._clock,
            self._sealer,
            inference=self._database,
            background=self._background_database,
            maintenance=self._admin_database,
            verifier=verifier,
        )
        for job in self.jobs:
            leases.run_while_held(self._tasks, self._database, job, self._instance_id)

    async def _set_gauges(self) -> None:
        metrics.database_connections_in_use(self._database.connections_in_use)
        bound_metrics.bodies_held(self._body_quota.used_bytes)
        metrics.admin_database_connections_in_use(self._admin_database.connections_in_use)
        self._inference.model_resolver.show_candidates()


def from_environment() -> Application:
    """Return an application, for `granian --interface asgi --factory`."""
    return Application(load())
