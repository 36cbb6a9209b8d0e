"""Types of the ledger. All amounts are whole pico-dollars."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from uuid import UUID

from tollhouse.base.ids import (
    GrantId,
    InstanceId,
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    ReservationId,
    parse_uuid,
)
from tollhouse.base.money import PicoUsd

ZERO = PicoUsd(0)
CREDIT_ALERT_PERCENT = 80
LIFETIME_START = date.min
"""The date that the driver sends as `-infinity`."""


class CapScope(StrEnum):
    """The scope of a spending counter and its cap."""

    ORGANIZATION = "organization"
    PROJECT = "project"
    KEY = "api_key"


class Period(StrEnum):
    """The period of a cap: the UTC day, week or month of admission, or all time.

    A week begins on Monday.
    """

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    LIFETIME = "lifetime"

    def window_start(self, day: date) -> date:
        """Return the first day of the window that contains `day`."""
        match self:
            case Period.DAY:
                return day
            case Period.WEEK:
                return day - timedelta(days=day.weekday())
            case Period.MONTH:
                return day.replace(day=1)
            case Period.LIFETIME:
                return LIFETIME_START

    @property
    def short_days(self) -> int | None:
        """The days of a short window, which the counter of a longer one contains; else None."""
        return {Period.DAY: 1, Period.WEEK: 7}.get(self)

    @property
    def counter_period(self) -> "Period":
        """The period whose counter has the amounts of this one."""
        return {Period.DAY: Period.MONTH, Period.WEEK: Period.LIFETIME}.get(self, self)


class GrantKind(StrEnum):
    """The reason of a grant. Only a correction may be negative."""

    SANDBOX = "sandbox"
    TEST_PAYMENT = "test_payment"
    PROMOTIONAL = "promotional"
    CORRECTION = "correction"
    BACKFILL = "backfill"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """The most that a request may cost, reserved before the backend is called.

    `admitted_at` stays the same in every retry. Its UTC date is `admitted_day`, to which caps and
    cost reports count the request whenever it is settled.
    """

    organization_id: OrganizationId
    reservation_id: ReservationId
    project_id: ProjectId
    api_key_id: ProjectKeyId
    model: str
    price_revision: int
    amount_pico_usd: PicoUsd
    admitted_at: datetime
    deadline_at: datetime
    bills_without_answer: bool
    admitted_day: date = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "admitted_day", self.admitted_at.date())


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """The usage of a request and the cost of each part.

    Input does not include cached input, but cache writes, which are also counted of their own.
    """

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    images: int = 0
    input_pico_usd: PicoUsd = ZERO
    cache_write_pico_usd: PicoUsd = ZERO
    cached_input_pico_usd: PicoUsd = ZERO
    output_pico_usd: PicoUsd = ZERO
    image_pico_usd: PicoUsd = ZERO
    request_pico_usd: PicoUsd = ZERO

    @property
    def total_pico_usd(self) -> PicoUsd:
        """The sum of all parts."""
        return PicoUsd(  # cache writes are part of the input
            self.input_pico_usd
            + self.cached_input_pico_usd
            + self.output_pico_usd
            + self.image_pico_usd
            + self.request_pico_usd
        )


NOTHING = Charge()


class ResolutionKind(StrEnum):
    """How a hold ends: charged, released in full, or written off without known usage."""

    POST = "post"
    VOID = "void"
    WRITE_OFF = "write_off"


class OperatorPays(StrEnum):
    """The rules under which the operator, not the caller, pays for generated or delivered tokens.

    This is the whole list: a delivered token is charged to the caller unless one of them holds.
    """

    WORKER_LOST = "worker_lost"
    """The worker died and its count of delivered tokens is lost, so the hold is written off."""

    POLICY_EVALUATOR_FAILED = "policy_evaluator_failed"
    """An enforcing policy could not be evaluated, so the generated answer was not delivered."""

    BACKEND_FAILED = "backend_failed"
    """The backend failed and the answer was lost before any of it was delivered."""

    GATEWAY_STOPPED = "gateway_stopped"
    """The gateway stopped before the answer was complete."""

    ABOVE_HOLD = "above_hold"
    """The usage is above what was held, or above the output bound that the caller set."""


UNDELIVERED = frozenset({OperatorPays.POLICY_EVALUATOR_FAILED, OperatorPays.BACKEND_FAILED})
"""The rules that cover generated tokens, but not delivered tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """The end of a hold. Its charge never exceeds the hold; the rest is `excess_pico_usd`.

    `delivered_tokens` is the counted output that was sent to the caller, at most the charged one
    if the engine reported that, or None if the count is not known. `is_estimated`: Tollhouse
    counted the usage because the engine reported none. `operator_pays` may be None despite an
    excess: see `operator_rule`. `model` is the model that answered, if it is not that of the hold.
    """

    organization_id: OrganizationId
    reservation_id: ReservationId
    admitted_day: date
    kind: ResolutionKind
    charge: Charge = NOTHING
    excess_pico_usd: PicoUsd = ZERO
    delivered_tokens: int | None = 0
    is_estimated: bool = False
    operator_pays: OperatorPays | None = None
    model: str | None = None

    @property
    def operator_rule(self) -> OperatorPays | None:
        """The rule that the entry stores: the operator pays every excess."""
        if self.operator_pays is None and self.excess_pico_usd > 0:
            return OperatorPays.ABOVE_HOLD
        return self.operator_pays


class HoldDecision(StrEnum):
    """A manual change of entries by an operator."""

    SETTLE = "settle"
    RELEASE = "release"
    BACKFILL = "backfill"


@dataclass(frozen=True, kw_only=True, slots=True)
class PastUsage:
    """Usage on a past UTC day, entered as one request."""

    project_id: ProjectId
    api_key_id: ProjectKeyId
    model: str
    day: date
    charge: Charge


class ResolutionResult(IntEnum):
    """The result of a resolution: stored now, resolved before, or no such hold."""

    NOW = 0
    BEFORE = 1
    NO_HOLD = 2


class AdmissionVerdict(IntEnum):
    """The result of an admission, in the numbers of the function `ledger_admit_batch`.

    From 10 on, a cap refused: 10 plus its position in `rules.CAPS`.
    """

    ADMITTED = 0
    NO_CREDIT = 1
    WRONG_CLOCK = 2
    NO_ACCOUNT = 3
    SKIPPED = 4
    TOO_LATE = 5
    FROZEN = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class CapId:
    """The identity of a cap within its organization."""

    scope: CapScope
    scope_id: UUID
    period: Period

    @property
    def text(self) -> str:
        """The identity as the API shows it."""
        return f"{self.scope}:{self.scope_id}:{self.period}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cap:
    """A bound on spending. An alert is raised when `alert_percent` of it is settled."""

    organization_id: OrganizationId
    scope: CapScope
    scope_id: UUID
    period: Period
    limit_pico_usd: PicoUsd
    alert_percent: int

    @property
    def place(self) -> CapId:
        """The identity of the cap within its organization."""
        return CapId(scope=self.scope, scope_id=self.scope_id, period=self.period)

    @property
    def alert_pico_usd(self) -> PicoUsd:
        """`alert_percent` of the limit, rounded up."""
        return PicoUsd(-(-self.limit_pico_usd * self.alert_percent // 100))


@dataclass(frozen=True, kw_only=True, slots=True)
class CapUse:
    """A cap, and the amounts that are settled and reserved in its current window."""

    cap: Cap
    settled_pico_usd: PicoUsd
    reserved_pico_usd: PicoUsd

    @property
    def remaining_pico_usd(self) -> PicoUsd:
        """The amount that a new request may reserve; negative if the cap was set below its use."""
        return PicoUsd(self.cap.limit_pico_usd - self.settled_pico_usd - self.reserved_pico_usd)

    @property
    def is_alerting(self) -> bool:
        """Whether the settled amount has reached the alert; holds do not count."""
        return self.settled_pico_usd >= self.cap.alert_pico_usd


@dataclass(frozen=True, kw_only=True, slots=True)
class Credit:
    """An organization's account."""

    organization_id: OrganizationId
    granted_pico_usd: PicoUsd
    settled_pico_usd: PicoUsd
    reserved_pico_usd: PicoUsd
    unsettled_pico_usd: PicoUsd
    unsettled_requests: int
    written_off_excess_pico_usd: PicoUsd
    written_off_unknown_pico_usd: PicoUsd

    @property
    def written_off_pico_usd(self) -> PicoUsd:
        """What the operator paid: above a hold, or held and never known."""
        return PicoUsd(self.written_off_excess_pico_usd + self.written_off_unknown_pico_usd)

    @property
    def balance_pico_usd(self) -> PicoUsd:
        """The unspent credit, including the part that is held."""
        return PicoUsd(self.granted_pico_usd - self.settled_pico_usd)

    @property
    def available_pico_usd(self) -> PicoUsd:
        """The amount that a new request may reserve; a correction can make it negative."""
        return PicoUsd(self.balance_pico_usd - self.reserved_pico_usd)

    @property
    def is_alerting(self) -> bool:
        """Whether 80 percent of the credit is settled; also true without any credit."""
        return self.settled_pico_usd * 100 >= self.granted_pico_usd * CREDIT_ALERT_PERCENT


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """A change of credit, with its author and reason."""

    organization_id: OrganizationId
    id: GrantId
    kind: GrantKind
    amount_pico_usd: PicoUsd
    reason: str
    actor_type: str
    actor_id: str | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class UnsettledHold:
    """A hold whose cost is not known yet. It stays reserved until it is resolved or due."""

    organization_id: OrganizationId
    reservation_id: ReservationId
    admitted_day: date
    admitted_at: datetime
    project_id: ProjectId
    api_key_id: ProjectKeyId
    model: str
    amount_pico_usd: PicoUsd
    instance_id: InstanceId
    unsettled_at: datetime
    decide_at: datetime


def parse_cap_place(text: str) -> CapId | None:
    """Parse the form of `CapId.text`; return None for any other text."""
    scope, _, rest = text.partition(":")
    scope_id, _, period = rest.partition(":")
    parsed = parse_uuid(scope_id)
    if parsed is None or scope not in set(CapScope) or period not in set(Period):
        return None
    return CapId(scope=CapScope(scope), scope_id=parsed, period=Period(period))


def to_pico_usd(value: Decimal | int) -> PicoUsd:
    """Convert a `numeric(38,0)` of the database, which the driver returns as a decimal."""
    return PicoUsd(int(value))
