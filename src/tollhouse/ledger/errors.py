"""How admission and the verbs of money fail."""

from datetime import date
from typing import ClassVar

from tollhouse.base.errors import GatewayError, InvalidRequest, Kind, ServiceUnavailable
from tollhouse.base.money import PicoUsd, to_decimal_string
from tollhouse.ledger.types import Period, Scope

HELD_RETRY_SECONDS = 5


class Uncovered(GatewayError):
    """Credit or a cap cannot cover the worst case of the request.

    While requests in flight hold what is missing, waiting can help, and the answer says so.
    """

    kind = Kind.UNCOVERED
    code = "credit_balance_exhausted"
    subject: ClassVar[str] = "credit"

    def __init__(self, *, needed: PicoUsd, available: PicoUsd, held: PicoUsd) -> None:
        super().__init__(
            f"The {self.subject} cannot cover this request: {_usd(needed)} needed,"
            f" {_usd(available)} available, {_usd(held)} held by requests that are under way."
            " Ask for fewer output tokens, or let an administrator or the operator raise it."
        )
        self.needed = needed
        self.available = available
        self.held = held
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


CAP_ERRORS: dict[Scope, type[Uncovered]] = {
    Scope.ORGANIZATION: OrganizationCapReached,
    Scope.PROJECT: ProjectCapReached,
    Scope.KEY: KeyCapReached,
}


class AdmissionUndecided(ServiceUnavailable):
    """The database did not confirm the held credit in time. The credit will be given back."""

    def __init__(self) -> None:
        super().__init__("The request could not be admitted in time. Try again shortly.")


class AdmissionImpossible(ServiceUnavailable):
    """The database refused to store the held credit, as when the day's partition is missing."""

    def __init__(self) -> None:
        super().__init__("The gateway cannot admit requests now. Try again shortly.")


class ClockIsWrong(ServiceUnavailable):
    """The worker's clock is more than ten minutes off the database's."""

    def __init__(self) -> None:
        super().__init__("The gateway's clock is wrong. Try again shortly.")


class DeadlinePassed(GatewayError):
    """The request's own deadline passed while it waited, or its hold was decided meanwhile."""

    kind = Kind.DEADLINE
    code = "deadline_exceeded"
    should_retry = False

    def __init__(self) -> None:
        super().__init__(
            "The request's deadline passed before it could be admitted. Send it again."
        )


class AccountMissing(Exception):
    """Our own bug: every organization has an account from its creation on."""


class ResolutionSetAside(Exception):
    """The database refuses this resolution for good; its hold stays and becomes unsettled."""


class HoldNotFound(GatewayError):
    """No such reservation on that day, or it is already resolved."""

    kind = Kind.NOT_FOUND
    code = "reservation_not_found"

    def __init__(self) -> None:
        super().__init__("No unsettled reservation has this ID.")


class GrantWouldTakeCredit(InvalidRequest):
    """Only a correction takes credit back."""

    def __init__(self) -> None:
        super().__init__("invalid_value", "The amount must be above zero.", param="amount")


class GrantOfNothing(InvalidRequest):
    """A correction goes up or down."""

    def __init__(self) -> None:
        super().__init__("invalid_value", "The amount must not be zero.", param="amount")


class TestPaymentsRefused(GatewayError):
    """Only sandbox deployments take test payments."""

    kind = Kind.DENIED
    code = "test_payments_refused"
    should_retry = False

    def __init__(self) -> None:
        super().__init__("This deployment takes no test payments, because it is no sandbox.")


class CappedProjectNotFound(GatewayError):
    """Unknown, or another organization's: the answer does not tell which."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such project in this organization. "
            "`GET /manage/v1/organization/projects` lists them.",
            param="project_id",
        )


class CappedKeyNotFound(GatewayError):
    """Unknown, another organization's, or an Admin key: the answer does not tell which."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such project key in this organization. "
            "`GET /manage/v1/organization/projects/{project_id}/api_keys` lists them.",
            param="api_key_id",
        )


class GrantNotFound(GatewayError):
    """Unknown, or another organization's: the answer does not tell which."""

    kind = Kind.NOT_FOUND
    code = "credit_entry_not_found"

    def __init__(self) -> None:
        super().__init__("No such credit entry in this organization.")


class CapNotFound(GatewayError):
    """No such cap is set."""

    kind = Kind.NOT_FOUND
    code = "spending_limit_not_found"

    def __init__(self, scope: Scope, period: Period) -> None:
        super().__init__(f"No {period} spending limit is set for this {scope}.")


class InvalidPrice(InvalidRequest):
    """A price that cannot be a whole number of pico-dollars, or is no plain decimal."""

    def __init__(self, text: str) -> None:
        super().__init__(
            "invalid_value",
            f"Invalid price '{text}': expected US dollars as a plain decimal such as '0.0000025',"
            " with at most 12 decimals, at most 9223372.036854775807.",
        )


class ReservationTooLarge(GatewayError):
    """The request could cost more than can be held for one request."""

    kind = Kind.UNCOVERED
    code = "reservation_too_large"
    should_retry = False

    def __init__(self) -> None:
        super().__init__(
            "The request could cost more than 9.2 million US dollars."
            " Lower the output bound or the number of completions."
        )


class AmountOutOfRange(InvalidRequest):
    """One entry holds at most 9.2 million dollars."""

    def __init__(self) -> None:
        super().__init__(
            "invalid_value", "The amount must be from 0 to 9223372.036854775807.", param="amount"
        )


class DayIsClosed(GatewayError):
    """The entries of this day were replaced by their sums, which are final."""

    kind = Kind.CONFLICT
    code = "day_closed"

    def __init__(self, day: date) -> None:
        super().__init__(f"The ledger's day {day} is closed; nothing can be entered there.")


class DayNotPast(InvalidRequest):
    """Usage of days to come is admitted, not entered."""

    def __init__(self, day: date) -> None:
        super().__init__("invalid_value", f"The day {day} lies in the future.", param="day")


class SpenderNotFound(GatewayError):
    """No such key in this project and organization."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"

    def __init__(self) -> None:
        super().__init__("No such key in this project.", param="api_key_id")


def _usd(amount: PicoUsd) -> str:
    return f"{to_decimal_string(amount)} USD"
