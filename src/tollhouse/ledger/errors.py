"""Errors of admission, credit and spending limits."""

from datetime import date
from typing import ClassVar

from tollhouse.base.errors import (
    DeploymentError,
    GatewayError,
    InvalidInput,
    Kind,
    ServiceUnavailable,
)
from tollhouse.base.money import PicoUsd, to_decimal_string
from tollhouse.ledger.types import CapScope, Period

HELD_RETRY_SECONDS = 5
_WINDOWS = {
    Period.DAY: " for this day (UTC)",
    Period.WEEK: " for this week (Monday to Sunday, UTC)",
    Period.MONTH: " for this month (UTC)",
    Period.LIFETIME: " for all time",
}


class Uncovered(GatewayError):
    """Credit or a spending limit cannot cover the highest possible cost of the request.

    If requests in progress hold the missing amount, `Retry-After` says when to try again.
    """

    kind = Kind.UNCOVERED
    code = "credit_balance_exhausted"
    subject: ClassVar[str] = "credit"
    template = (
        "The {self.subject}{self.window} cannot cover this request: {self.needed_usd} USD needed,"
        " {self.available_usd} USD available, {self.held_usd} USD held by requests that are under"
        " way. Ask for fewer output tokens, or let an administrator or the operator raise it."
    )
    needed: PicoUsd
    available: PicoUsd
    held: PicoUsd
    period: Period | None = None
    may_be_stored: bool = False
    """A statement without an answer may still admit this request later."""

    def __init__(
        self,
        *,
        needed: PicoUsd,
        available: PicoUsd,
        held: PicoUsd,
        period: Period | None = None,
    ) -> None:
        self.needed, self.available, self.held, self.period = needed, available, held, period
        super().__init__(
            needed_usd=to_decimal_string(needed),
            available_usd=to_decimal_string(available),
            held_usd=to_decimal_string(held),
            window="" if period is None else _WINDOWS[period],
        )
        if needed <= available + held:
            self.retry_after_seconds = HELD_RETRY_SECONDS


class CreditExhausted(Uncovered):
    """The organization's prepaid credit cannot cover the request."""


class OrganizationCapReached(Uncovered):
    """The organization's spending cap cannot cover the request."""

    code = "organization_spend_limit_exceeded"
    subject = "organization's spending limit"


class ProjectCapReached(Uncovered):
    """The project's spending cap cannot cover the request."""

    code = "project_spend_limit_exceeded"
    subject = "project's spending limit"


class KeyCapReached(Uncovered):
    """The key's spending cap cannot cover the request."""

    code = "api_key_spend_limit_exceeded"
    subject = "key's spending limit"


CAP_ERRORS: dict[CapScope, type[Uncovered]] = {
    CapScope.ORGANIZATION: OrganizationCapReached,
    CapScope.PROJECT: ProjectCapReached,
    CapScope.KEY: KeyCapReached,
}


class AdmissionUndecided(ServiceUnavailable):
    """The database did not confirm the held credit in time. The credit is given back later."""

    template = "The request could not be admitted in time. Try again shortly."


class AdmissionImpossible(ServiceUnavailable):
    """The database refused to hold the credit, for example because a partition is missing."""

    template = "The gateway cannot admit requests now. Try again shortly."


class ClockIsWrong(ServiceUnavailable):
    """The worker's clock differs from the database's by more than ten minutes."""

    template = "The gateway's clock is wrong. Try again shortly."


class DeadlinePassed(GatewayError):
    """The request's deadline passed before it was answered."""

    kind = Kind.DEADLINE
    code = "deadline_exceeded"
    should_retry = False
    template = "The request's deadline passed before it was answered. Send it again."


class AccountMissing(Exception):
    """An organization has no account. This is a bug: it gets one when it is created."""


class ResolutionSetAside(Exception):
    """The database refuses this resolution for good. Its hold becomes unsettled."""


class HoldNotFound(GatewayError):
    """The reservation does not exist on that day, or is already resolved."""

    kind = Kind.NOT_FOUND
    code = "reservation_not_found"
    template = "No unsettled reservation has this ID."


class GrantWouldTakeCredit(InvalidInput):
    """The amount is not above zero. Only a correction takes credit back."""

    param = "amount"
    template = "The amount must be above zero."


class GrantOfNothing(InvalidInput):
    """The amount of a correction is zero."""

    param = "amount"
    template = "The amount must not be zero."


class TestPaymentsRefused(GatewayError):
    """The deployment is not a sandbox, and only sandboxes take test payments."""

    kind = Kind.DENIED
    code = "test_payments_refused"
    should_retry = False
    template = "This deployment takes no test payments, because it is no sandbox."


class CappedProjectNotFound(GatewayError):
    """The project does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"
    param = "project_id"
    template = (
        "No such project in this organization. `GET /manage/v1/organization/projects` lists them."
    )


class CappedKeyNotFound(GatewayError):
    """The project key does not exist, belongs to another organization, or is an Admin key."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"
    param = "api_key_id"
    template = (
        "No such project key in this organization. `GET "
        "/manage/v1/organization/projects/{{project_id}}/api_keys` lists them."
    )


class GrantNotFound(GatewayError):
    """The credit entry does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "credit_entry_not_found"
    template = "No such credit entry in this organization."


class CapNotFound(GatewayError):
    """The spending limit is not set."""

    kind = Kind.NOT_FOUND
    code = "spending_limit_not_found"
    template = "No {self.period} spending limit is set for this {self.scope}."
    scope: CapScope
    period: Period


class InvalidPrice(InvalidInput):
    """The price is not a plain decimal, or not a whole number of pico-dollars."""

    template = (
        "Invalid price '{self.text}': expected US dollars as a plain decimal such as '0.0000025', "
        "with at most 12 decimals, at most 9223372.036854775807."
    )
    text: str


class ReservationTooLarge(GatewayError):
    """The request could cost more than can be held for one request."""

    kind = Kind.UNCOVERED
    code = "reservation_too_large"
    should_retry = False
    template = (
        "The request could cost more than 9.2 million US dollars. Lower the output bound or the "
        "number of completions."
    )


class AmountOutOfRange(InvalidInput):
    """The amount is above the 9.2 million dollars that one entry can have."""

    param = "amount"
    template = "The amount must be from 0 to 9223372.036854775807."


class DayIsClosed(GatewayError):
    """The entries of this day were replaced by their final sums."""

    kind = Kind.CONFLICT
    code = "day_closed"
    template = "The ledger's day {self.day} is closed; nothing can be entered there."
    day: date


class DayIsOpen(DeploymentError):
    """A day that is closed in one cell has entries in another."""

    code = "day_open"

    def __init__(self, day: date) -> None:
        super().__init__(
            f"The ledger's day {day} is closed in the other cell and open here. Set "
            "`ledger.entry_days` of both cells to the same number of days."
        )


class DayNotPast(InvalidInput):
    """The day lies in the future."""

    param = "day"
    template = "The day {self.day} lies in the future."
    day: date


class SpenderNotFound(GatewayError):
    """The key does not exist in this project and organization."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"
    param = "api_key_id"
    template = "No such key in this project."
