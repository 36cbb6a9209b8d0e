"""What the composition root built, in the one form that handlers see."""

from concurrent.futures import Executor
from dataclasses import dataclass

from tollhouse.activity.recorder import Recorder
from tollhouse.base.clock import Clock
from tollhouse.keys.directory import KeyDirectory
from tollhouse.keys.last_used import LastUsed
from tollhouse.keys.secrets import Peppers
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
    """One per worker."""

    clock: Clock
    database: Database
    directory: KeyDirectory
    last_used: LastUsed
    peppers: Peppers
    sealer: Sealer
    cursors: Cursors
    recorder: Recorder
    parsing_pool: Executor
    bounds: EdgeBounds
    customer_header: bytes
    record_days: int
    default_threshold_basis_points: int
    is_sandbox: bool
    documentation_url: str | None
