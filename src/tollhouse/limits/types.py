"""Types of rate limits, and of the requests that are counted against them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from msgspec import Struct

from tollhouse.base.ids import (
    OrganizationId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    parse_uuid,
)
from tollhouse.base.traffic import ScopedLimits, TrafficLimits


class LimitScope(StrEnum):
    """The scope of a limit, in the order of `ScopedLimits`."""

    ORGANIZATION = "organization"
    PROJECT = "project"
    KEY = "api_key"


class LimitOwner(StrEnum):
    """The party that set a limit. An organization sees the operator's, but cannot change it."""

    OPERATOR = "operator"
    ORGANIZATION = "organization"


class LimitedQuantity(StrEnum):
    """What a limit counts."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    CONCURRENT = "concurrent"


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitId:
    """The identity of a limit within its organization."""

    scope: LimitScope
    scope_id: UUID
    owner: LimitOwner

    @property
    def text(self) -> str:
        """The identity as the API shows it."""
        return f"{self.scope}:{self.scope_id}:{self.owner}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimit:
    """A limit that was set for a scope."""

    organization_id: OrganizationId
    scope: LimitScope
    scope_id: UUID
    owner: LimitOwner
    traffic: TrafficLimits

    @property
    def place(self) -> LimitId:
        """The identity of the limit within its organization."""
        return LimitId(scope=self.scope, scope_id=self.scope_id, owner=self.owner)


# Types that are created for every request are Structs: creating one takes a tenth of the time.


class LimitSubject(Struct, frozen=True, kw_only=True):
    """A request that needs a permit, and the limits of its key.

    `declared_tokens` is the most that its prompt can have by its declared size; None if no size is
    declared, or if the request takes no tokens.
    """

    organization_id: OrganizationId
    project_id: ProjectId
    api_key_id: ProjectKeyId
    limits: ScopedLimits
    request_id: RequestId
    declared_tokens: int | None = None


class BucketCost(Struct, frozen=True, kw_only=True):
    """The cost of a request in one bucket. Cost and size are the times that refilling takes."""

    scope: LimitScope
    key: str
    limit: int
    cost_us: int
    full_us: int


class ConcurrencySlot(Struct, frozen=True, kw_only=True):
    """One of `limit` concurrent requests."""

    scope: LimitScope
    key: str
    limit: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitSet:
    """The buckets and slots of one key.

    `costs` and `slots` are taken on entry; tokens are taken later, when their number is known.
    """

    costs: tuple[BucketCost, ...]
    slots: tuple[ConcurrencySlot, ...]
    token_limits: tuple[tuple[LimitScope, str, int], ...]


class LimitRequest(Struct, frozen=True, kw_only=True):
    """Costs and slots to grant together. `member` identifies the request in its slots.

    `expected` is taken too if the grant leaves at least half of each of these buckets. It never
    refuses a request.
    """

    costs: tuple[BucketCost, ...]
    slots: tuple[ConcurrencySlot, ...] = ()
    expected: tuple[BucketCost, ...] = ()
    member: str = ""


Corrections: TypeAlias = Sequence[tuple[BucketCost, int]]
"""The microseconds to take from each bucket in addition; negative to give back."""


class LimitDecision(Struct, frozen=True, kw_only=True):
    """A grant of the whole request, or a refusal by one limit that takes nothing.

    `missing_us` is the time until each bucket is full again, after the grant, and
    `expected_missing_us` that of the expected costs; None if these were not taken.
    """

    missing_us: tuple[int, ...]
    expected_missing_us: tuple[int, ...] | None = None
    refused_by: BucketCost | ConcurrencySlot | None = None
    wait_us: int = 0


def parse_limit_place(text: str) -> LimitId | None:
    """Parse the form of `LimitId.text`; return None for any other text."""
    scope, _, rest = text.partition(":")
    scope_id, _, owner = rest.partition(":")
    parsed = parse_uuid(scope_id)
    if parsed is None or scope not in set(LimitScope) or owner not in set(LimitOwner):
        return None
    return LimitId(scope=LimitScope(scope), scope_id=parsed, owner=LimitOwner(owner))
