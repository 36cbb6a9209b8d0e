"""One process of the gateway: the real path of a request, on simulated parts."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from typing import Any, cast
from uuid import UUID

import msgspec

from tests.simulation import loop as loops
from tests.simulation.catalog import CATALOG, JUDGE, SICK, model_of
from tests.simulation.connection import Connection
from tests.simulation.database import SimulatedDatabase
from tests.simulation.engine import SimulatedBackend
from tests.simulation.judge import SimulatedJudge
from tests.simulation.ledger_server import LedgerServer
from tests.simulation.plan import Backend, Organization, Policy, Surface
from tests.simulation.redis_server import RedisServer, SimulatedRedisTransport
from tests.simulation.system import (
    Facts,
    SimulatedSystem,
    key_id,
    organization_id,
    policy_id,
    project_id,
    prompt_words,
    rule_of,
)
from tollhouse.activity.types import RequestRecord
from tollhouse.api.errors import Presentation, body_of
from tollhouse.api.stream_sender import StreamSender
from tollhouse.base.clock import DatabaseClock
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import InstanceId, OrganizationId, ProjectId, RequestId
from tollhouse.base.policies import Direction, Mode
from tollhouse.base.rates import OrganizationRate
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import UNLIMITED, TrafficLimits
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import ErrorBody, ErrorShape
from tollhouse.contract.message_request import MessageRequest
from tollhouse.contract.responses import ResponseRequest
from tollhouse.evaluation.buffer_quota import AnswerBuffers
from tollhouse.evaluation.dependencies import evaluator_dependencies, evaluator_for
from tollhouse.evaluation.policy_resolver import PolicyResolver
from tollhouse.inference.calls import InferenceAnswer, InferenceCall, WholeAnswer
from tollhouse.inference.chat import ChatEndpoint
from tollhouse.inference.endpoint import Endpoint
from tollhouse.inference.messages.endpoint import MessagesEndpoint
from tollhouse.inference.meter import tokens_of
from tollhouse.inference.model_resolver import ModelResolver
from tollhouse.inference.pipeline import Pipeline, Timeouts
from tollhouse.inference.responses.endpoint import ResponsesEndpoint
from tollhouse.inference.streaming import StreamedAnswer
from tollhouse.inference.trace import RequestTrace
from tollhouse.inference.upstream_request import UpstreamRequestBuilder
from tollhouse.keys.types import Customer
from tollhouse.ledger.batcher import Batcher
from tollhouse.limits.limiter import RENEW_EVERY_SECONDS, Limiter, Permit
from tollhouse.limits.redis_connection import AnswerReader, RedisTransport
from tollhouse.limits.types import LimitSubject
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.policies.types import AppliedPolicy, PolicySnapshot

SECRET = b"a secret of the simulation"
WAIT_MAX = Timeouts(head_wait_seconds=10.0, admission=timedelta(seconds=5))
KEEP_ALIVE_SECONDS = 15.0
STOPPING_SECONDS = 5.0
BUFFER_REQUEST_BYTES, BUFFER_WORKER_BYTES = 150_000, 800_000
Watched = Callable[[Facts, Coroutine[Any, Any, None]], Coroutine[Any, Any, None]]
BatcherOf = Callable[[Any, Tasks, InstanceId], Batcher]


class MovedPermit(Permit):
    """A permit that tells the facts of its request who owns it after a move."""

    def __init__(self, facts: Facts, permit: Permit) -> None:
        self._facts = facts
        self._permit = permit

    async def take_tokens(self, tokens: int) -> None:
        """Count the tokens on the real permit."""
        await self._permit.take_tokens(tokens)

    def hand_over(self) -> Permit:
        """Move the real permit."""
        self._facts.permit = moved = self._permit.hand_over()
        return moved


class MachineClock:
    """A machine's clock, which may be wrong."""

    def __init__(self, system: SimulatedSystem, offset_seconds: float) -> None:
        self._world = system
        self._offset = timedelta(seconds=offset_seconds)

    def now(self) -> datetime:
        """The time as this machine knows it."""
        return self._world.now() + self._offset

    def monotonic_seconds(self) -> float:
        """Seconds that pass alike on all machines."""
        return self._world.loop.time()


class SimulatedSnapshots:
    """What a worker knows of policies: the plan's."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._by_version = {
            (organization_id(number), version): _snapshot(number, organization, version)
            for number, organization in enumerate(system.plan.organizations)
            for version in (1, 2)
        }

    async def find(
        self, organization: OrganizationId, project: ProjectId, *, policy_version: int
    ) -> PolicySnapshot:
        """What applies to the organization's only project."""
        return self._by_version[organization, policy_version]


@dataclass
class Serving:
    """One request inside a worker."""

    facts: Facts
    connection: Connection
    task: "asyncio.Task[None] | None" = None


@dataclass
class Worker:
    """One process."""

    system: SimulatedSystem
    ledger: LedgerServer
    redis: RedisServer
    number: int
    machine: loops.Machine
    records: dict[UUID, list[RequestRecord]] = field(
        default_factory=dict[UUID, list[RequestRecord]]
    )
    watched: Watched = lambda _, serving: serving
    """Wraps what serves a request, so that a run can count and cancel its suspensions."""
    serving: list[Serving] = field(default_factory=list[Serving])
    is_stopping: bool = False
    machine_is_done: bool = False
    """No request will come any more."""
    stood_still: bool = False
    """It was paused for so long that others took it for dead."""
    may_lose: bool = False
    """It was killed, stopped, or silent for so long that others took it for dead."""
    may_break_off: bool = False
    """It had to end requests before their answers were complete."""

    @property
    def has_trouble(self) -> bool:
        """Whether the plan lets anything happen to it."""
        return bool(self.system.plan.workers[self.number].troubles)

    def start(self, batcher_of: BatcherOf) -> None:
        """Put the real parts together, as the composition root does."""
        system = self.system
        clock = DatabaseClock(MachineClock(system, system.plan.workers[self.number].clock_offset))
        clock.correct(system.now(), asked_seconds=system.loop.time())
        self.clock = clock
        self.tasks, self.calls = Tasks(), Tasks()
        self.database = SimulatedDatabase(system, self.ledger, self.machine)
        self.batcher = batcher_of(self.database, self.tasks, InstanceId(UUID(int=self.number)))
        self.buffers = AnswerBuffers(
            request_max=BUFFER_REQUEST_BYTES, worker_max=BUFFER_WORKER_BYTES
        )
        ports: dict[str, Any] = {
            f"{SICK if is_sick else ''}{kind.value}": SimulatedBackend(
                system, self.ledger, kind, clock, is_sick=is_sick
            )
            for kind, is_sick in product(Backend, (False, True))
        }
        ports[JUDGE] = SimulatedJudge(system, self.machine.name)
        self.evaluator = evaluator_for(CATALOG, ports, clock, secret=SECRET)
        self.evaluator_dependencies = evaluator_dependencies(
            CATALOG.judge,
            self.evaluator,
            clock,
            self.calls,
            buffers=self.buffers,
            pending_evaluations_max=8,
            record=lambda _: None,
        )
        self.limiter = Limiter(
            clock,
            self.tasks,
            redis_url="redis://redis.invalid" if system.plan.has_redis else None,
            answer_seconds=0.2,
            connect=self._connect_redis,
        )
        self.pipeline = Pipeline(
            clock=clock,
            tasks=self.calls,
            batcher=self.batcher,
            policy_resolver=PolicyResolver(
                cast("PolicySnapshots", SimulatedSnapshots(system)), self.evaluator_dependencies
            ),
            upstream_requests=UpstreamRequestBuilder(SECRET),
            model_resolver=ModelResolver(
                CATALOG,
                ports,
                price_revision=1,
                counted_bytes=OrganizationRate(clock, per_minute=1),
            ),
            timeouts=WAIT_MAX,
            render_error=_show,
        )

    def accept(self, facts: Facts, connection: Connection) -> None:
        """Begin to serve a request."""
        serving = Serving(facts, connection)
        self.serving.append(serving)
        served = self.watched(facts, self.serve(facts, connection))
        serving.task = self.system.loop.create_task(served, context=self.machine.context.copy())
        serving.task.add_done_callback(
            lambda task: connection.cut() if task.cancelled() else None,
            context=self.system.outside.context,
        )

    async def renew_leases(self) -> None:
        """Renew the leases of what runs, as long as anything does."""
        while not self.machine_is_done:
            await asyncio.sleep(RENEW_EVERY_SECONDS)
            await self.limiter.renew_leases()

    async def _connect_redis(self, _: str, reader: AnswerReader) -> RedisTransport:
        await asyncio.sleep(0.0005)
        return SimulatedRedisTransport(self.redis, self.machine.name, reader)

    async def serve(self, facts: Facts, connection: Connection) -> None:
        """One request, as the edge serves it."""
        trace = self._trace(facts)
        try:
            status = await self._answer(facts, connection, trace)
        except GatewayError as failure:
            trace.failure = failure
            connection.refuse(failure)
            status = 400
        trace.answered(status=status, now_seconds=self.clock.monotonic_seconds())

    async def _answer(self, facts: Facts, connection: Connection, trace: RequestTrace) -> int:
        customer = self._customer(facts)
        limit_subject = LimitSubject(
            organization_id=customer.organization_id,
            project_id=customer.project_id,
            api_key_id=customer.key_id,
            limits=customer.limits,
            request_id=facts.request_id,
            declared_tokens=tokens_of(len(msgspec.json.encode(_body(facts)))),
        )
        facts.permit = permit = await self.limiter.enter(limit_subject)
        self._check_slots(facts)
        try:
            answer = await self._run(facts, permit, trace)
        finally:
            permit.leave(used_tokens=0)
        if isinstance(answer, WholeAnswer):
            await connection.send({"type": "http.response.start", "status": 200})
            await connection.send({"type": "http.response.body", "body": answer.body})
            return 200
        return await self._broadcast(answer, connection)

    async def _run(self, facts: Facts, permit: Permit, trace: RequestTrace) -> InferenceAnswer:
        async def recheck() -> Customer:
            return self._customer(facts)

        return await self.pipeline.run(
            InferenceCall(
                request_id=facts.request_id,
                now=self.clock.now(),
                endpoint=_ENDPOINTS[facts.request.surface],
                body=_body(facts),
                session=None,
                permit=MovedPermit(facts, permit),
                trace=trace,
                recheck=recheck,
                charge_cpu=None,
                end_pending=lambda: None,
                has_left=lambda: facts.left_at is not None,
            )
        )

    def _check_slots(self, facts: Facts) -> None:
        """No more requests are inside than the organization may have at once.

        Without Redis workers count alone; so they do while it is lost, or after a pause that
        outlasts a lease.
        """
        plan = self.system.plan
        if self.redis.has_lost or any(worker.troubles for worker in plan.workers):
            return
        limit = plan.organizations[facts.request.organization].concurrent_requests
        inside = [
            each
            for each in self.system.facts.values()
            if each.is_inside
            and each.request.organization == facts.request.organization
            and (plan.has_redis or each.machine is self.machine)
        ]
        self.system.check(
            limit is None or len(inside) <= limit,
            "slots",
            f"request {facts.number}: {len(inside)} are inside, {limit} may be",
        )

    async def _broadcast(self, answer: StreamedAnswer, connection: Connection) -> int:
        try:
            await connection.send({"type": "http.response.start", "status": 200})
        except BaseException:
            answer.abandon()
            raise
        broadcast = StreamSender(
            answer,
            receive=connection.receive,
            send=connection.send,
            abort=connection.abort,
            clock=self.clock,
            keep_alive_seconds=KEEP_ALIVE_SECONDS,
        )
        await broadcast.run(self.tasks)
        return 200

    async def stop(self) -> None:
        """End as the server and the composition root do: streams first, then what is left."""
        self.system.note(self.machine.name, "stops")
        self.is_stopping = self.may_lose = self.may_break_off = True
        await self._wait(STOPPING_SECONDS)
        self.pipeline.end_streams()
        await self._wait(1.0)
        for serving in self.serving:
            serving.connection.cut()
        await self._wait(1.0)
        left = [each.task for each in self.serving if each.task and not each.task.done()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self.calls.drain(deadline_seconds=STOPPING_SECONDS)
        await self.tasks.drain(deadline_seconds=STOPPING_SECONDS)
        self.system.note(self.machine.name, "has stopped")

    async def _wait(self, seconds: float) -> None:
        running = {each.task for each in self.serving if each.task and not each.task.done()}
        if running:
            await asyncio.wait(running, timeout=seconds)

    def kill(self) -> None:
        """Run nothing any more, at once."""
        self.system.note(self.machine.name, "is killed")
        self.machine.state = loops.State.DEAD
        self.may_lose = True
        for serving in self.serving:
            serving.connection.cut()

    def _trace(self, facts: Facts) -> RequestTrace:
        def note(record: RequestRecord) -> None:
            self.records.setdefault(facts.request_id, []).append(record)

        return RequestTrace(
            request_id=facts.request_id,
            method="POST",
            caller=self._customer(facts),
            operation="chat",
            started_at=self.clock.now(),
            started_seconds=self.clock.monotonic_seconds(),
            record=note,
        )

    def _customer(self, facts: Facts) -> Customer:
        number = facts.request.organization
        organization = self.system.plan.organizations[number]
        limits = TrafficLimits(
            tokens_per_minute=organization.tokens_per_minute,
            concurrent_requests=organization.concurrent_requests,
        )
        return Customer(
            organization_id=organization_id(number),
            project_id=project_id(number),
            key_id=key_id(number),
            allowed_models=None,
            granted_checks=frozenset(),
            policy_version=self.system.policy_version(number),
            catalog_version=1,
            limits=(UNLIMITED, UNLIMITED, limits),
        )


def real_batcher(database: Any, tasks: Tasks, instance: InstanceId) -> Batcher:
    """The one that the gateway has."""
    return Batcher(database, tasks, instance, own_batches_max=2)


def _snapshot(number: int, organization: Organization, version: int) -> PolicySnapshot:
    policies = tuple(_applied(number, policy, version) for policy in organization.policies)
    return PolicySnapshot(policy_version=version, policies=policies)


def _applied(organization: int, policy: Policy, version: int) -> AppliedPolicy:
    return AppliedPolicy(
        id=policy_id(organization, policy.number),
        version=version,
        rule=rule_of(organization, policy.number, version),
        direction=Direction(policy.direction),
        mode=Mode.ENFORCING if policy.is_enforcing else Mode.MONITORING,
        match_threshold_basis_points=5_000,
        ends_answer_early=policy.ends_early,
    )


def _show(failure: GatewayError, request_id: RequestId, shape: ErrorShape) -> ErrorBody:
    presentation = Presentation(request_id=request_id, shape=shape, documentation_url=None)
    return body_of(failure, presentation)


_ENDPOINTS: dict[Surface, Endpoint] = {
    Surface.CHAT: ChatEndpoint(),
    Surface.RESPONSES: ResponsesEndpoint(),
    Surface.MESSAGES: MessagesEndpoint(),
}


def _body(facts: Facts) -> ChatRequest | ResponseRequest | MessageRequest:
    request, text = facts.request, " ".join(prompt_words(facts))
    sick = None if request.sick is None else request.sick.backend
    model = model_of(request.answer.backend, sick)
    if request.surface is Surface.RESPONSES:
        return msgspec.convert(
            {
                "model": model,
                "input": text,
                "stream": request.is_stream,
                "max_output_tokens": request.output_tokens,
            },
            ResponseRequest,
        )
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "stream": request.is_stream,
        "max_tokens": request.output_tokens,
    }
    if request.surface is Surface.MESSAGES:
        return msgspec.convert(body | {"thinking": {"type": "adaptive"}}, MessageRequest)
    if request.choices > 1:
        body["n"] = request.choices
    if request.is_stream and request.shows_usage:
        body["stream_options"] = {"include_usage": True}
    return msgspec.convert(body, ChatRequest)
