"""Limits as they are set, and what a request asks of them."""

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


class Scope(StrEnum):
    """What a limit bounds, in the order in which a caller's limits are given."""

    ORGANIZATION = "organization"
    PROJECT = "project"
    KEY = "api_key"


class Owner(StrEnum):
    """Who set a limit. An organization sees the operator's and cannot change it."""

    OPERATOR = "operator"
    ORGANIZATION = "organization"


class Counted(StrEnum):
    """What a limit counts."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    CONCURRENT = "concurrent"


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitPlace:
    """What tells a limit from every other one of its organization."""

    scope: Scope
    scope_id: UUID
    owner: Owner

    @property
    def text(self) -> str:
        """The form in which callers see it."""
        return f"{self.scope}:{self.scope_id}:{self.owner}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimit:
    """A limit as it was set."""

    organization_id: OrganizationId
    scope: Scope
    scope_id: UUID
    owner: Owner
    traffic: TrafficLimits

    @property
    def place(self) -> LimitPlace:
        """What tells it from every other limit of the organization."""
        return LimitPlace(scope=self.scope, scope_id=self.scope_id, owner=self.owner)


# From here on what is made for every request, which a Struct is in a tenth of the time.


class Entrant(Struct, frozen=True, kw_only=True):
    """Who wants to enter, and the limits that its key came with."""

    organization_id: OrganizationId
    project_id: ProjectId
    api_key_id: ProjectKeyId
    limits: ScopedLimits
    request_id: RequestId


class Draw(Struct, frozen=True, kw_only=True):
    """What a request takes out of one bucket, both as the time that refilling takes."""

    scope: Scope
    key: str
    limit: int
    cost_us: int
    full_us: int


class Slot(Struct, frozen=True, kw_only=True):
    """One of so many requests at once."""

    scope: Scope
    key: str
    limit: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What every request of one key is counted against, as long as its limits stay the same.

    `draws` and `slots` are for entering; tokens are drawn later, when their number is known.
    """

    limits: ScopedLimits
    draws: tuple[Draw, ...]
    slots: tuple[Slot, ...]
    token_limits: tuple[tuple[Scope, str, int], ...]


class Ask(Struct, frozen=True, kw_only=True):
    """All that one step of a request needs at once; `member` names the request in its slots."""

    draws: tuple[Draw, ...]
    slots: tuple[Slot, ...] = ()
    member: str = ""


Corrections: TypeAlias = tuple[tuple[Draw, int], ...]
"""For each bucket how many microseconds more are missing from it; negative: less."""


class Decision(Struct, frozen=True, kw_only=True):
    """Granted whole, or refused by one limit and nothing taken.

    `missing_us` says of each bucket how long it needs to be full, after what was taken.
    """

    missing_us: tuple[int, ...]
    refused_by: Draw | Slot | None = None
    wait_us: int = 0


def parse_limit_place(text: str) -> LimitPlace | None:
    """Read the one form that `LimitPlace.text` has."""
    scope, _, rest = text.partition(":")
    scope_id, _, owner = rest.partition(":")
    parsed = parse_uuid(scope_id)
    if parsed is None or scope not in set(Scope) or owner not in set(Owner):
        return None
    return LimitPlace(scope=Scope(scope), scope_id=parsed, owner=Owner(owner))
