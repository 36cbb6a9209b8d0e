"""Rate limits: how much traffic an organization, a project or a key may cause.

A limit is named by what it bounds. Without an ID it bounds the organization.
"""

from typing import ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import (
    ConcurrentRequests,
    PathId,
    RequestsPerMinute,
    TokensPerMinute,
)
from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import extension

RateLimitScope = Literal["organization", "project", "api_key"]
RateLimitOwner = Literal["operator", "organization"]


class SetRateLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At most one of the IDs, at least one of the bounds. What was set before is replaced."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    project_id: PathId | UnsetType = UNSET
    api_key_id: PathId | UnsetType = UNSET
    requests_per_minute: RequestsPerMinute | None = None
    tokens_per_minute: TokensPerMinute | None = None
    concurrent_requests: ConcurrentRequests | None = None


class ClearRateLimitQuery(Struct, frozen=True, kw_only=True):
    """At most one of the IDs."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    project_id: PathId | UnsetType = UNSET
    api_key_id: PathId | UnsetType = UNSET


class RateLimit(Struct, frozen=True, kw_only=True):
    """A limit of the organization's own, or of the operator's: of each bound the lower holds."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    id: str
    object: Literal["organization.rate_limit"] = "organization.rate_limit"
    scope: RateLimitScope
    project_id: str | None
    api_key_id: str | None
    owner: RateLimitOwner
    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrent_requests: int | None


class RateLimitList(ListPage, frozen=True, kw_only=True):
    """A page of limits: the organization's first, then in the order of IDs."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    data: list[RateLimit]


class RateLimitDeleted(Struct, frozen=True, kw_only=True):
    """A limit that no longer bounds anything."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    id: str
    object: Literal["organization.rate_limit.deleted"] = "organization.rate_limit.deleted"
    deleted: bool


def check(limit: SetRateLimit | ClearRateLimitQuery) -> None:
    """Refuse a limit of two things."""
    if limit.project_id is not UNSET and limit.api_key_id is not UNSET:
        message = "Send 'project_id' or 'api_key_id', not both."
        raise InvalidRequest("invalid_parameter_combination", message, param="api_key_id")
