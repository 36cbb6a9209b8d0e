"""The parts of inference put together, from the catalog and what the composition root has."""

from collections.abc import Callable
from dataclasses import dataclass

from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.transport import Transport
from tollhouse.backends.types import BackendConfig
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import InstanceId, RequestId
from tollhouse.base.rates import OrganizationRate
from tollhouse.base.tasks import Tasks
from tollhouse.catalog.types import Backend, Catalog
from tollhouse.contract.errors import ErrorBody
from tollhouse.decisions.types import Examination
from tollhouse.inference.allowance import HeldBytes
from tollhouse.inference.asks import Asks
from tollhouse.inference.counting import TokenCounter
from tollhouse.inference.courts import court_of, courtroom_of
from tollhouse.inference.offers import Offers, price_list
from tollhouse.inference.pipeline import Patience, Pipeline
from tollhouse.inference.policing import Policing
from tollhouse.inference.tenancy import Tenancy
from tollhouse.judging.trials import Trials
from tollhouse.ledger import service as ledger
from tollhouse.ledger.batcher import Batcher
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.storage.database import Database


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What inference stands on. `calls` are tasks of callers who left, `tasks` those of money.

    Policies are read by at most `policy_reads_max` connections, however many projects one change
    concerns. `pending_evaluations_max` and `counted_bytes_per_minute` bound one organization.
    """

    clock: Clock
    tasks: Tasks
    calls: Tasks
    database: Database
    instance_id: InstanceId
    secret: bytes
    own_batches_max: int
    policy_reads_max: int
    pending_evaluations_max: int
    counted_bytes_per_minute: int


class Inference:
    """One per worker."""

    def __init__(
        self,
        catalog: Catalog,
        ground: Ground,
        *,
        price_revision: int,
        patience: Patience,
        buffers: HeldBytes,
        note: Callable[[Examination], None],
        show: Callable[[GatewayError, RequestId], ErrorBody],
    ) -> None:
        self._ground = ground
        self._transport = Transport()
        self._backends = {
            name: OpenAiBackend(backend_config(name, backend), self._transport, ground.clock)
            for name, backend in catalog.backends.items()
        }
        self.offers = Offers(
            catalog,
            self._backends,
            price_revision=price_revision,
            counted_bytes=OrganizationRate(
                ground.clock, per_minute=ground.counted_bytes_per_minute
            ),
        )
        self._court = court_of(catalog, self._backends, ground.clock, secret=ground.secret)
        policing = Policing(
            PolicySnapshots(
                ground.database.share(connections_max=ground.policy_reads_max), ground.tasks
            ),
            courtroom_of(
                catalog.judge,
                self._court,
                ground.clock,
                ground.calls,
                held_bytes=buffers,
                pending_evaluations_max=ground.pending_evaluations_max,
                note=note,
            ),
        )
        self.trials = Trials(self._court)
        self.token_counter = TokenCounter(self.offers, policing)
        self.pipeline = Pipeline(
            clock=ground.clock,
            tasks=ground.calls,
            batcher=Batcher(
                ground.database,
                ground.tasks,
                ground.instance_id,
                own_batches_max=ground.own_batches_max,
            ),
            policing=policing,
            asks=Asks(Tenancy(ground.secret)),
            offers=self.offers,
            patience=patience,
            show=show,
        )

    def start(self) -> None:
        """Begin to watch the health of every replica, and get the judge ready."""
        for backend in self._backends.values():
            backend.start(self._ground.tasks)
        if self._court is not None:
            self._ground.tasks.start("judge-preparation", self._court.prepare())

    async def stop_watching(self) -> None:
        """Ask no replica for its health any more; calls under way go on."""
        for backend in self._backends.values():
            await backend.stop()

    async def close(self) -> None:
        """Called when no call is left."""
        await self._transport.close()


async def price_revision(database: Database, catalog: Catalog) -> int:
    """The number under which the ledger keeps the catalog's prices."""
    async with database.transaction() as tx:
        return await ledger.price_revision(tx, price_list(catalog))


def backend_config(name: str, backend: Backend) -> BackendConfig:
    """How a backend of the catalog is reached."""
    return BackendConfig(
        name=name,
        replicas=backend.replicas,
        api_key=backend.api_key,
        health_path=backend.health_path,
        bills_without_answer=backend.bills_without_answer,
        connections_max=backend.connections_max,
        connect_seconds=backend.connect_seconds,
        first_event_seconds=backend.first_event_seconds,
        idle_seconds=backend.idle_seconds,
        total_seconds=backend.total_seconds,
    )
