"""Nouns of money. All amounts are whole pico-dollars."""

from dataclasses import dataclass
from datetime import date, datetime
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
"""What the driver writes as `-infinity`."""


class Scope(StrEnum):
    """Whose spending is counted and may be capped."""

    ORGANIZATION = "organization"
    PROJECT = "project"
    KEY = "api_key"


class Period(StrEnum):
    """Over which time a cap counts: a UTC month of admission, or all of it."""

    MONTH = "month"
    LIFETIME = "lifetime"

    def window_start(self, day: date) -> date:
        """The first day that is counted together with `day`."""
        return day.replace(day=1) if self is Period.MONTH else LIFETIME_START


class GrantKind(StrEnum):
    """Why credit was given, or taken back: only a correction may be negative."""

    SANDBOX = "sandbox"
    TEST_PAYMENT = "test_payment"
    PROMOTIONAL = "promotional"
    CORRECTION = "correction"
    BACKFILL = "backfill"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """A request's worst case, to be reserved before any backend hears of it.

    `admitted_at` is fixed once and sent again with every retry: its UTC date is the day that
    the cap's month and the cost report count.
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

    @property
    def admitted_day(self) -> date:
        """The UTC day that this request belongs to, whenever it is settled."""
        return self.admitted_at.date()


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """What a request used and what each part of it costs. Input does not include cached input."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    images: int = 0
    input_pico_usd: PicoUsd = ZERO
    cached_input_pico_usd: PicoUsd = ZERO
    output_pico_usd: PicoUsd = ZERO
    image_pico_usd: PicoUsd = ZERO
    request_pico_usd: PicoUsd = ZERO

    @property
    def total_pico_usd(self) -> PicoUsd:
        """The sum of all parts."""
        return PicoUsd(
            self.input_pico_usd
            + self.cached_input_pico_usd
            + self.output_pico_usd
            + self.image_pico_usd
            + self.request_pico_usd
        )


NOTHING = Charge()


class ResolutionKind(StrEnum):
    """How a hold ends: charged, given back whole, or decided without knowing."""

    POST = "post"
    VOID = "void"
    ABSORB = "absorb"


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
"""The rules that excuse what was generated, and not what was delivered."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """The end of a hold. Its charge never exceeds the hold; what does is `excess_pico_usd`.

    `delivered_tokens` is the counted output that was sent to the caller, or None where the count
    is not known. `is_estimated` says that Tollhouse counted the usage because the engine reported
    none. `operator_pays` is None where the caller pays for everything.
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

    @property
    def operator_rule(self) -> OperatorPays | None:
        """The rule that the entry stores: an excess is never paid by the caller."""
        if self.operator_pays is None and self.excess_pico_usd > 0:
            return OperatorPays.ABOVE_HOLD
        return self.operator_pays


class Decided(StrEnum):
    """What an operator does to entries by hand."""

    SETTLE = "settle"
    RELEASE = "release"
    BACKFILL = "backfill"


@dataclass(frozen=True, kw_only=True, slots=True)
class PastUsage:
    """What was used on a past day, as one request; `day` is a UTC day."""

    project_id: ProjectId
    api_key_id: ProjectKeyId
    model: str
    day: date
    charge: Charge


class Resolved(IntEnum):
    """What became of a resolution: it is the one, it came too late, or there is no such hold."""

    NOW = 0
    BEFORE = 1
    NO_HOLD = 2


class Verdict(IntEnum):
    """What became of an admission; the numbers are those of the function `ledger_admit`.

    From 10 on a cap refused: 10 plus the position in `rules.CAPS`.
    """

    ADMITTED = 0
    NO_CREDIT = 1
    WRONG_CLOCK = 2
    NO_ACCOUNT = 3
    SKIPPED = 4
    TOO_LATE = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class CapPlace:
    """Where a cap stands, of which there is one at most."""

    scope: Scope
    scope_id: UUID
    period: Period

    @property
    def text(self) -> str:
        """The form in which callers see it."""
        return f"{self.scope}:{self.scope_id}:{self.period}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cap:
    """A bound on spending. `alert_percent` of it rings before it holds."""

    organization_id: OrganizationId
    scope: Scope
    scope_id: UUID
    period: Period
    limit_pico_usd: PicoUsd
    alert_percent: int

    @property
    def place(self) -> CapPlace:
        """What tells it from every other cap of the organization."""
        return CapPlace(scope=self.scope, scope_id=self.scope_id, period=self.period)

    @property
    def alert_pico_usd(self) -> PicoUsd:
        """The least that is `alert_percent` of the limit."""
        return PicoUsd(-(-self.limit_pico_usd * self.alert_percent // 100))


@dataclass(frozen=True, kw_only=True, slots=True)
class Counter:
    """Where spending is counted; it exists whether or not a cap is set on it."""

    scope: Scope
    scope_id: UUID
    period: Period
    window_start: date


@dataclass(frozen=True, kw_only=True, slots=True)
class CapUse:
    """A cap and what of it is used in the present window."""

    cap: Cap
    settled_pico_usd: PicoUsd
    reserved_pico_usd: PicoUsd

    @property
    def remaining_pico_usd(self) -> PicoUsd:
        """What a new request may reserve; negative after the cap was set below what is used."""
        return PicoUsd(self.cap.limit_pico_usd - self.settled_pico_usd - self.reserved_pico_usd)

    @property
    def is_alerting(self) -> bool:
        """Whether the alert's share is spent; holds do not count."""
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
    absorbed_excess_pico_usd: PicoUsd
    absorbed_unknown_pico_usd: PicoUsd

    @property
    def balance_pico_usd(self) -> PicoUsd:
        """What is not spent, held or not."""
        return PicoUsd(self.granted_pico_usd - self.settled_pico_usd)

    @property
    def available_pico_usd(self) -> PicoUsd:
        """What a new request may reserve; negative after a correction below what is used."""
        return PicoUsd(self.balance_pico_usd - self.reserved_pico_usd)

    @property
    def is_alerting(self) -> bool:
        """Whether the alert's share is spent; so it is where there is no credit at all."""
        return self.settled_pico_usd * 100 >= self.granted_pico_usd * CREDIT_ALERT_PERCENT


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """Credit that was given or taken back, by whom and why."""

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
    """A hold whose end nobody knows yet: still held, until evidence or a decision."""

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


def parse_cap_place(text: str) -> CapPlace | None:
    """Read the one form that `CapPlace.text` has."""
    scope, _, rest = text.partition(":")
    scope_id, _, period = rest.partition(":")
    parsed = parse_uuid(scope_id)
    if parsed is None or scope not in set(Scope) or period not in set(Period):
        return None
    return CapPlace(scope=Scope(scope), scope_id=parsed, period=Period(period))


def to_pico_usd(value: Decimal | int) -> PicoUsd:
    """A `numeric(38,0)` of the database, which the driver gives as a decimal."""
    return PicoUsd(int(value))
