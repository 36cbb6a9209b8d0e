"""The wire types of spending limits on an organization, a project or a key.

A request names a limit by its period and by the ID of its project or key, or without an ID for the
organization.
"""

from typing import ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import ALERT_PERCENT_DEFAULT, AlertPercent, PathId
from tollhouse.contract.listing import ListPage
from tollhouse.contract.money import Money, MoneyToSet
from tollhouse.contract.origins import extension

SpendingPeriod = Literal["day", "week", "month", "lifetime"]
SpendingScope = Literal["organization", "project", "api_key"]


class SetSpendingLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A spending limit, which replaces the previous one. Send at most one ID."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    project_id: PathId | UnsetType = UNSET
    """The project to limit. Without it and `api_key_id`, the organization is limited."""
    api_key_id: PathId | UnsetType = UNSET
    """The key to limit."""
    period: SpendingPeriod
    """The UTC calendar period after which spending counts from zero; `lifetime` never ends."""
    limit: MoneyToSet
    """The amount that may be spent in a period."""
    alert_percent: AlertPercent = ALERT_PERCENT_DEFAULT
    """The share of the limit, in percent, at which an alert is raised."""


class ClearSpendingLimitQuery(Struct, frozen=True, kw_only=True):
    """The limit to remove. Send at most one ID."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    project_id: PathId | UnsetType = UNSET
    """The limited project. Without it and `api_key_id`, the organization's limit is removed."""
    api_key_id: PathId | UnsetType = UNSET
    """The limited key."""
    period: SpendingPeriod
    """The period of the limit."""


class SpendingLimit(Struct, frozen=True, kw_only=True):
    """A spending limit and its use in the current period."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    id: str
    object: Literal["organization.spending_limit"] = "organization.spending_limit"
    scope: SpendingScope
    """What is limited."""
    project_id: str | None
    """The limited project, or null."""
    api_key_id: str | None
    """The limited key, or null."""
    period: SpendingPeriod
    """The UTC calendar period after which spending counts from zero; `lifetime` never ends."""
    limit: Money
    """The amount that may be spent in a period."""
    used: Money
    """What settled requests cost in the present period."""
    held: Money
    """What is set aside for requests in progress."""
    remaining: Money
    """The limit without what is used and held. It may be negative."""
    alert_percent: int
    """The share of the limit, in percent, at which an alert is raised."""
    is_alerting: bool


class SpendingLimitList(ListPage, frozen=True, kw_only=True):
    """A page of limits, by scope."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    data: list[SpendingLimit]


class SpendingLimitDeleted(Struct, frozen=True, kw_only=True):
    """A limit that was removed."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    id: str
    object: Literal["organization.spending_limit.deleted"] = "organization.spending_limit.deleted"
    deleted: bool


def check(limit: SetSpendingLimit | ClearSpendingLimitQuery) -> None:
    """Raise `InvalidRequest` if both IDs are sent."""
    if limit.project_id is not UNSET and limit.api_key_id is not UNSET:
        message = "Send 'project_id' or 'api_key_id', not both."
        raise InvalidRequest("invalid_parameter_combination", message, param="api_key_id")
