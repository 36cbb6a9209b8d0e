"""What the composition root built, in the one form that handlers see."""

from collections.abc import Callable
from dataclasses import dataclass

from tollhouse.activity.recorder import Recorder
from tollhouse.api.admin_permits import AdminPermits
from tollhouse.api.body_quota import BodyQuota
from tollhouse.api.body_reader import BodyReader
from tollhouse.base.clock import Clock
from tollhouse.base.quotas import OrganizationQuotas
from tollhouse.base.tasks import Tasks
from tollhouse.catalog.types import Catalog
from tollhouse.inference.allowance import HeldBytes
from tollhouse.inference.counting import TokenCounter
from tollhouse.inference.pipeline import Pipeline
from tollhouse.judging.trials import Trials
from tollhouse.keys.directory import KeyDirectory
from tollhouse.keys.last_used import LastUsed
from tollhouse.keys.secrets import Peppers
from tollhouse.limits.limiter import Limiter
from tollhouse.policies.sets import Objection
from tollhouse.reports.cursors import Cursors
from tollhouse.storage.database import Database
from tollhouse.storage.sealing import Sealer


@dataclass(frozen=True, kw_only=True, slots=True)
class EdgeBounds:
    """How much of a request is read, and for how long."""

    body_bytes_max: int
    body_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class House:
    """One per worker. `is_backend_ready` takes the name of a backend.

    `database` and `report_database` are for Admin routes alone: inference has a pool of its own.
    """

    clock: Clock
    tasks: Tasks
    database: Database
    report_database: Database
    admin_permits: AdminPermits
    directory: KeyDirectory
    last_used: LastUsed
    peppers: Peppers
    sealer: Sealer
    cursors: Cursors
    limiter: Limiter
    recorder: Recorder
    catalog: Catalog
    is_backend_ready: Callable[[str], bool]
    pipeline: Pipeline
    buffers: HeldBytes
    token_counter: TokenCounter
    body_quota: BodyQuota
    body_reader: BodyReader
    bounds: EdgeBounds
    customer_header: bytes
    record_days: int
    quotas: OrganizationQuotas
    default_threshold_basis_points: int
    objection: Objection
    trials: Trials
    is_sandbox: bool
    keep_alive_seconds: float
    documentation_url: str | None
