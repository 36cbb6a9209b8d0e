"""The wire types of rate limits on an organization, a project or a key.

A request names a limit by the ID of its project or key, or without an ID for the organization.
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
    """A rate limit, which replaces the previous one. Send at most one ID and at least one bound."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    project_id: PathId | UnsetType = UNSET
    """The project to limit. Without it and `api_key_id`, the organization is limited."""
    api_key_id: PathId | UnsetType = UNSET
    """The key to limit."""
    requests_per_minute: RequestsPerMinute | None = None
    tokens_per_minute: TokensPerMinute | None = None
    concurrent_requests: ConcurrentRequests | None = None


class ClearRateLimitQuery(Struct, frozen=True, kw_only=True):
    """The limit to remove. Send at most one ID."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    project_id: PathId | UnsetType = UNSET
    """The limited project. Without it and `api_key_id`, the organization's limit is removed."""
    api_key_id: PathId | UnsetType = UNSET
    """The limited key."""


class RateLimit(Struct, frozen=True, kw_only=True):
    """A rate limit of the organization or of the operator. The lower of their bounds applies."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    id: str
    object: Literal["organization.rate_limit"] = "organization.rate_limit"
    scope: RateLimitScope
    """What is limited."""
    project_id: str | None
    """The limited project, or null."""
    api_key_id: str | None
    """The limited key, or null."""
    owner: RateLimitOwner
    """Who set the limit. The operator's cannot be changed here."""
    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrent_requests: int | None


class RateLimitList(ListPage, frozen=True, kw_only=True):
    """A page of limits: the organization's first, then by ID."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    data: list[RateLimit]


class RateLimitDeleted(Struct, frozen=True, kw_only=True):
    """A limit that was removed."""

    mark: ClassVar[Meta] = extension("OQ-139", "OQ-140")

    id: str
    object: Literal["organization.rate_limit.deleted"] = "organization.rate_limit.deleted"
    deleted: bool


def check(limit: SetRateLimit | ClearRateLimitQuery) -> None:
    """Raise `InvalidRequest` if both IDs are sent."""
    if limit.project_id is not UNSET and limit.api_key_id is not UNSET:
        message = "Send 'project_id' or 'api_key_id', not both."
        raise InvalidRequest("invalid_parameter_combination", message, param="api_key_id")
