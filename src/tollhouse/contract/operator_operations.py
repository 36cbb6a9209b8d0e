"""What only the operator may do, with its wire types. No route serves it."""

from functools import partial
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from tollhouse.base.permissions import CHECK_NAME_PATTERN
from tollhouse.contract import alerts, rate_limits
from tollhouse.contract import credits as credits_wire
from tollhouse.contract.bounds import SIGNED_USD_PATTERN, Name
from tollhouse.contract.command import Command, Words
from tollhouse.contract.listing import ListPage, ListQuery
from tollhouse.contract.money import Money
from tollhouse.contract.operation import OperatorOperation

_ORGANIZATIONS: Final = "/operator/organizations"
_ORGANIZATION: Final = f"{_ORGANIZATIONS}/{{organization_id}}"


class CreateOrganization(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new organization. Names need not be unique."""

    name: Name


class OperatorsOrganization(Struct, frozen=True, kw_only=True):
    """An organization as the operator sees it."""

    id: str
    object: Literal["organization"] = "organization"
    name: str
    status: str
    created_at: int


class OrganizationWithMoney(OperatorsOrganization, frozen=True, kw_only=True):
    """An organization with its credit and spending.

    `last_charged_at` is the begin of the hour in which its newest charged request was admitted.
    """

    available: Money
    granted: Money
    spent: Money
    spent_this_month: Money
    held: Money
    unsettled: Money
    unsettled_requests: int
    written_off: Money
    written_off_excess: Money
    written_off_unknown: Money
    last_charged_at: int | None


class OrganizationList(ListPage, frozen=True, kw_only=True):
    """A page of the organizations of the deployment."""

    data: list[OrganizationWithMoney]


class GrantCheck(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A check that models can require."""

    check: Annotated[str, Meta(pattern=CHECK_NAME_PATTERN)]


class GrantedCheck(Struct, frozen=True, kw_only=True):
    """A granted check; its name is its ID."""

    id: str
    object: Literal["organization.check"] = "organization.check"
    granted_at: int


class CheckList(ListPage, frozen=True, kw_only=True):
    """All checks of an organization."""

    data: list[GrantedCheck]


class CheckDeleted(Struct, frozen=True, kw_only=True):
    """A check that was revoked."""

    id: str
    object: Literal["organization.check.deleted"] = "organization.check.deleted"
    deleted: bool


class SignedMoney(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An amount that a correction may take back."""

    value: Annotated[str, Meta(pattern=SIGNED_USD_PATTERN)]
    currency: Literal["usd"] = "usd"


class GrantCredit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credit to add. Only a correction may be negative: it takes credit back."""

    amount: SignedMoney
    kind: Literal["sandbox", "test_payment", "promotional", "correction"] = "promotional"
    reason: Name


class SetBackendAlert(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a subscription is told that a backend has no replica left."""

    backend_down: bool = True


class ConsoleSession(Struct, frozen=True, kw_only=True):
    """An open session. `owner_id` is that of the person, or of the Admin key without a name."""

    id: str
    owner_id: str
    person_name: str | None
    organizations: list[str]
    created_at: int
    expires_at: int


class ConsoleSessionList(ListPage, frozen=True, kw_only=True):
    """Open sessions, newest first."""

    data: list[ConsoleSession]


_organization = partial(OperatorOperation, method="POST", result=OperatorsOrganization)

CREATE_ORGANIZATION = _organization(
    id="createOrganization",
    is_of_organization=False,
    path=_ORGANIZATIONS,
    body=CreateOrganization,
    command=Command(
        "org create",
        (
            "Create an organization. Names need not be unique.\n\n"
            "Running it again creates another one. `tollhouse org create-from` takes a file with "
            "projects, keys, credit and caps."
        ),
        example='"Example Ltd"',
        arguments="name",
    ),
)
LIST_ORGANIZATIONS = OperatorOperation(
    id="listOrganizations",
    is_of_organization=False,
    method="GET",
    path=_ORGANIZATIONS,
    query=ListQuery,
    result=OrganizationList,
    command=Command(
        "org list",
        "List organizations in the order of their creation, with credit and spending.",
        example="--json",
        columns=(
            "id name status available spent spent_this_month written_off unsettled last_charged_at "
            "created_at"
        ),
    ),
)
RETRIEVE_ORGANIZATION = OperatorOperation(
    id="retrieveOrganizationForOperator",
    method="GET",
    path=_ORGANIZATION,
    result=OrganizationWithMoney,
    command=Command(
        "org show",
        "Show one organization with its credit, its spending and what you wrote off.",
        example='"Example Ltd"',
        arguments="organization_id",
    ),
)
SUSPEND_ORGANIZATION = _organization(
    id="suspendOrganization",
    path=f"{_ORGANIZATION}/suspend",
    command=Command(
        "org suspend",
        "Stop all keys of an organization until it is resumed.",
        example='"Example Ltd"',
        arguments="organization_id",
    ),
)
RESUME_ORGANIZATION = _organization(
    id="resumeOrganization",
    path=f"{_ORGANIZATION}/resume",
    command=Command(
        "org resume",
        "Let the keys of a suspended organization work again.",
        example='"Example Ltd"',
        arguments="organization_id",
    ),
)
CLOSE_ORGANIZATION = _organization(
    id="closeOrganization",
    path=f"{_ORGANIZATION}/close",
    command=Command(
        "org close",
        "Close an organization for good, with all its keys.",
        example='"Example Ltd"',
        arguments="organization_id",
        question="Close organization {} for good, with all its keys?",
    ),
)
GRANT_CHECK = OperatorOperation(
    id="grantCheck",
    method="POST",
    path=f"{_ORGANIZATION}/checks",
    body=GrantCheck,
    result=GrantedCheck,
    command=Command(
        "org checks grant",
        "Grant a check. Models that require it are unlocked within a second.",
        example='"Example Ltd" identity',
        arguments="organization_id check",
    ),
)
REVOKE_CHECK = OperatorOperation(
    id="revokeCheck",
    method="DELETE",
    path=f"{_ORGANIZATION}/checks/{{check}}",
    result=CheckDeleted,
    command=Command(
        "org checks revoke",
        "Revoke a check. Models that require it are locked within a second.",
        example='"Example Ltd" identity',
        arguments="organization_id check",
    ),
)
LIST_CHECKS = OperatorOperation(
    id="listChecks",
    method="GET",
    path=f"{_ORGANIZATION}/checks",
    result=CheckList,
    command=Command(
        "org checks list",
        "List the checks of an organization by name.",
        example='"Example Ltd" --json',
        arguments="organization_id",
        columns="id granted_at",
    ),
)
SET_OPERATOR_LIMIT = OperatorOperation(
    id="setOperatorLimit",
    method="PUT",
    path=f"{_ORGANIZATION}/rate_limits",
    body=rate_limits.SetRateLimit,
    result=rate_limits.RateLimit,
    command=Command(
        "org limits set",
        (
            "Set or replace your limit, which the organization can only read. An option that is "
            "left out sets no limit.\n\n"
            "Without --project and --key, the organization is limited. `tollhouse limits show` "
            "lists your limits and the organization's own."
        ),
        example='"Example Ltd" --requests 600 --concurrent 20',
        arguments="organization_id",
    ),
)
CLEAR_OPERATOR_LIMIT = OperatorOperation(
    id="clearOperatorLimit",
    method="DELETE",
    path=f"{_ORGANIZATION}/rate_limits",
    query=rate_limits.ClearRateLimitQuery,
    result=rate_limits.RateLimitDeleted,
    command=Command(
        "org limits clear",
        "Remove your limit. The organization's own stays.",
        example='"Example Ltd" --project search',
        arguments="organization_id",
    ),
)
GRANT_CREDIT = OperatorOperation(
    id="grantCredit",
    method="POST",
    path="/operator/credits/grants",
    body=GrantCredit,
    result=credits_wire.CreditEntry,
    creates_idempotently=True,
    command=Command(
        "credits grant",
        (
            "Grant an organization credit in US dollars.\n\n"
            "Write a negative amount last, after `--`, so that it is not read as an option."
        ),
        example='25 --reason "pilot project"',
        arguments="amount",
        is_creation=True,
        words={
            "kind": Words("kind", "Only a correction may be negative: it takes credit back."),
            "reason": Words("reason", "Stored with the entry."),
        },
    ),
)
SET_BACKEND_ALERT = OperatorOperation(
    id="setBackendAlert",
    method="PUT",
    path="/operator/alert_subscriptions/{alert_subscription_id}",
    body=SetBackendAlert,
    result=alerts.AlertSubscription,
    command=Command(
        "alerts backends",
        "Choose whether a subscription is told that a backend has no replica left.",
        example="platform --no-backend-down",
        arguments="alert_subscription_id",
        words={"backend_down": Words("backend-down", "Whether it is told. When left out, it is.")},
    ),
)
LIST_SESSIONS = OperatorOperation(
    id="listConsoleSessions",
    is_of_organization=False,
    method="GET",
    path="/operator/sessions",
    result=ConsoleSessionList,
    command=Command(
        "session list",
        "List the open sessions of all organizations, newest first.",
        example="--json",
        columns="id owner_id person_name organizations created_at expires_at",
    ),
)
END_SESSION = OperatorOperation(
    id="endConsoleSession",
    is_of_organization=False,
    method="POST",
    path="/operator/sessions/{session_id}/end",
    result=ConsoleSession,
    command=Command(
        "session end",
        "End a session at once, in all workers. The person can sign in again.",
        example="SESSION_ID",
        arguments="session_id",
    ),
)

OPERATIONS: Final = tuple(
    value for value in tuple(vars().values()) if isinstance(value, OperatorOperation)
)
"""All of them, in the order of the command line's pages."""
