"""Spending limits: caps on what an organization, a project or a key may spend.

A limit is named by what it bounds and by its period. Without an ID it bounds the organization.
"""

from typing import ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import ALERT_PERCENT_DEFAULT, AlertPercent, PathId
from tollhouse.contract.listing import ListPage
from tollhouse.contract.money import Money, MoneyToSet
from tollhouse.contract.origins import extension

SpendingPeriod = Literal["month", "lifetime"]
SpendingScope = Literal["organization", "project", "api_key"]


class SetSpendingLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At most one of the IDs. A limit that is there already is replaced."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    project_id: PathId | UnsetType = UNSET
    api_key_id: PathId | UnsetType = UNSET
    period: SpendingPeriod
    limit: MoneyToSet
    alert_percent: AlertPercent = ALERT_PERCENT_DEFAULT


class ClearSpendingLimitQuery(Struct, frozen=True, kw_only=True):
    """At most one of the IDs."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    project_id: PathId | UnsetType = UNSET
    api_key_id: PathId | UnsetType = UNSET
    period: SpendingPeriod


class SpendingLimit(Struct, frozen=True, kw_only=True):
    """With what is used and held in the present window; `remaining` may be negative."""

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
    """A limit that no longer bounds anything."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-170")

    id: str
    object: Literal["organization.spending_limit.deleted"] = "organization.spending_limit.deleted"
    deleted: bool


def check(limit: SetSpendingLimit | ClearSpendingLimitQuery) -> None:
    """Refuse a limit of two things."""
    if limit.project_id is not UNSET and limit.api_key_id is not UNSET:
        message = "Send 'project_id' or 'api_key_id', not both."
        raise InvalidRequest("invalid_parameter_combination", message, param="api_key_id")
