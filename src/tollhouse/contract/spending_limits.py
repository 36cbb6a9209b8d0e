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
    api_key_id: PathId | UnsetType = UNSET
    period: SpendingPeriod
    limit: MoneyToSet
    alert_percent: AlertPercent = ALERT_PERCENT_DEFAULT


class ClearSpendingLimitQuery(Struct, frozen=True, kw_only=True):
    """The limit to remove. Send at most one ID."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    project_id: PathId | UnsetType = UNSET
    api_key_id: PathId | UnsetType = UNSET
    period: SpendingPeriod


class SpendingLimit(Struct, frozen=True, kw_only=True):
    """A spending limit and its use in the current period. `remaining` may be negative."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    id: str
    object: Literal["organization.spending_limit"] = "organization.spending_limit"
    scope: SpendingScope
    project_id: str | None
    api_key_id: str | None
    period: SpendingPeriod
    limit: Money
    used: Money
    held: Money
    remaining: Money
    alert_percent: int
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
