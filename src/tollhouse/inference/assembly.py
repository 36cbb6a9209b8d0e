"""Build the parts of inference from the catalog."""

from collections.abc import Callable
from dataclasses import dataclass

from tollhouse.backends.messages_http import MessagesBackend
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.oversight import EXCHANGE_EVERY_SECONDS, ReplicaOversight
from tollhouse.backends.transport import Transport
from tollhouse.backends.types import FIRST_EVENT_SECONDS, BackendConfig
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import InstanceId, RequestId
from tollhouse.base.rates import OrganizationRate
from tollhouse.base.tasks import Tasks
from tollhouse.catalog.types import Backend, Catalog
from tollhouse.contract.errors import ErrorBody, ErrorShape
from tollhouse.decisions.types import EvaluationRecord
from tollhouse.evaluation import (
    AnswerBuffers,
    PolicyResolver,
    PolicyTrials,
    evaluator_dependencies,
    evaluator_for,
)
from tollhouse.inference.messages.token_counter import TokenCounter
from tollhouse.inference.model_resolver import ModelResolver, price_list
from tollhouse.inference.pipeline import Pipeline, Timeouts
from tollhouse.inference.upstream_request import UpstreamRequestBuilder
from tollhouse.ledger import service as ledger
from tollhouse.ledger.batcher import Batcher
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.storage.database import Database


@dataclass(frozen=True, kw_only=True, slots=True)
class InferenceConfig:
    """The secret, prices and timeouts of a worker, and what it counts for an organization free."""

    secret: bytes
    price_revision: int
    timeouts: Timeouts
    counted_bytes_per_minute: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationConfig:
    """Where buffered answers and evaluation records go; how many evaluations may be pending."""

    buffers: AnswerBuffers
    pending_per_organization_max: int
    record: Callable[[EvaluationRecord], None]


class Inference:
    """Backends, policy evaluation, token counting and the pipeline of one worker.

    `calls` runs what must end after its caller has disconnected.
    """

    def __init__(
        self,
        catalog: Catalog,
        config: InferenceConfig,
        evaluation: EvaluationConfig,
        *,
        clock: Clock,
        calls: Tasks,
        batcher: Batcher,
        policy_snapshots: PolicySnapshots,
        render_error: Callable[[GatewayError, RequestId, ErrorShape], ErrorBody],
    ) -> None:
        self._clock = clock
        self._backends = {
            name: backend_port(name, backend, clock) for name, backend in catalog.backends.items()
        }
        self.model_resolver = ModelResolver(
            catalog,
            self._backends,
            price_revision=config.price_revision,
            counted_bytes=OrganizationRate(clock, per_minute=config.counted_bytes_per_minute),
        )
        self._evaluator = evaluator_for(catalog, self._backends, clock, secret=config.secret)
        policy_resolver = PolicyResolver(
            policy_snapshots,
            evaluator_dependencies(
                catalog.judge,
                self._evaluator,
                clock,
                calls,
                buffers=evaluation.buffers,
                pending_evaluations_max=evaluation.pending_per_organization_max,
                record=evaluation.record,
            ),
        )
        self.trials = PolicyTrials(self._evaluator)
        self.token_counter = TokenCounter(self.model_resolver, policy_resolver)
        self.pipeline = Pipeline(
            clock=clock,
            tasks=calls,
            batcher=batcher,
            policy_resolver=policy_resolver,
            upstream_requests=UpstreamRequestBuilder(config.secret),
            model_resolver=self.model_resolver,
            timeouts=config.timeouts,
            render_error=render_error,
        )

    def start(self, tasks: Tasks) -> None:
        """Start the health checks of all replicas, and prepare the judge."""
        for backend in self._backends.values():
            backend.start(tasks)
        if self._evaluator is not None:
            tasks.start("judge-preparation", self._evaluator.prepare())

    def oversee(self, database: Database, instance_id: InstanceId, tasks: Tasks) -> None:
        """Report the replicas that are left out, and obey the operator's orders."""
        replicas = {name: backend.replicas for name, backend in self._backends.items()}
        overseen = ReplicaOversight(database, self._clock, instance_id, replicas)
        tasks.repeat("replicas", overseen.exchange, EXCHANGE_EVERY_SECONDS)

    async def stop_health_checks(self) -> None:
        """Stop the health checks; calls in flight go on."""
        for backend in self._backends.values():
            await backend.stop()

    async def close(self) -> None:
        """Close all connections to backends, when no call is in flight any more."""
        for backend in self._backends.values():
            await backend.close()


async def price_revision(database: Database, catalog: Catalog) -> int:
    """Return the number under which the ledger keeps the catalog's prices."""
    async with database.transaction() as tx:
        return await ledger.price_revision(tx, price_list(catalog))


def backend_port(name: str, backend: Backend, clock: Clock) -> OpenAiBackend:
    """Return the port that speaks the backend's dialect, with connections that it must close."""
    port = MessagesBackend if backend.dialect == "anthropic" else OpenAiBackend
    return port(backend_config(name, backend), Transport(backend.ca_certificates), clock)


def backend_config(name: str, backend: Backend) -> BackendConfig:
    """Return how to call a backend of the catalog."""
    return BackendConfig(
        name=name,
        replicas=backend.replicas,
        replica_names=backend.replica_names,
        dialect=backend.dialect,
        api_key=backend.api_key,
        health_path=backend.health_path,
        bills_without_answer=backend.bills_without_answer,
        connections_max=backend.connections_max,
        connect_seconds=backend.connect_seconds,
        first_event_seconds=backend.first_event_seconds or FIRST_EVENT_SECONDS,
        idle_seconds=backend.idle_seconds,
        total_seconds=backend.total_seconds,
    )
