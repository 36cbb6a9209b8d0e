"""What comes before the judge: whose request, which policies, and what every hearing needs."""

from collections.abc import Callable
from dataclasses import dataclass

from tollhouse.base.clock import Clock
from tollhouse.base.ids import RequestId
from tollhouse.base.tasks import Tasks
from tollhouse.contract.chat import ChatRequest
from tollhouse.decisions.types import Examination
from tollhouse.inference.allowance import HeldBytes
from tollhouse.inference.surface import NameOf
from tollhouse.inference.watching import Watcher
from tollhouse.judging.budget import applying
from tollhouse.judging.court import Court
from tollhouse.judging.slots import PendingEvaluations
from tollhouse.judging.types import JudgedDirection
from tollhouse.keys.types import Customer
from tollhouse.policies.types import AppliedPolicy, Mode


@dataclass(frozen=True, kw_only=True, slots=True)
class Applied:
    """What applies to a request: by its project, and what it adds by `policy_ids`.

    It may select what applies anyway, and then adds nothing.
    """

    by_scope: tuple[AppliedPolicy, ...]
    selected: tuple[AppliedPolicy, ...] = ()
    has_selection: bool = False

    @property
    def all(self) -> tuple[AppliedPolicy, ...]:
        """Each policy once."""
        return self.by_scope + self.selected

    def of(self, direction: JudgedDirection, mode: Mode) -> tuple[AppliedPolicy, ...]:
        """Those that are asked in this direction and count in this way."""
        return tuple(each for each in applying(self.all, direction) if each.mode is mode)


@dataclass(frozen=True, kw_only=True, slots=True)
class Courtroom:
    """What every hearing of a worker needs. Without a court nothing can be decided."""

    court: Court | None
    watcher: Watcher
    pending: PendingEvaluations
    held_bytes: HeldBytes
    tasks: Tasks
    clock: Clock
    note: Callable[[Examination], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matter:
    """The request that is heard. `name_of` finds a field by the name that its caller used."""

    request_id: RequestId
    customer: Customer
    request: ChatRequest
    name_of: NameOf
    size_bytes: int
