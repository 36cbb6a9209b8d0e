"""The organization, its status, and its granted checks."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from tollhouse.base.ids import OrganizationId


class OrganizationStatus(StrEnum):
    """The status of an organization. Suspension can be lifted; closing is final."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    CLOSED = "closed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Organization:
    """One customer, with its own projects, keys, policies and credit."""

    id: OrganizationId
    name: str
    status: OrganizationStatus
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class GrantedCheck:
    """A check that the operator granted to an organization; models may require it."""

    organization_id: OrganizationId
    name: str
    granted_at: datetime


class MoveState(StrEnum):
    """Where an organization is while it moves to another cell."""

    LEAVING = "leaving"
    """Frozen in the cell that it leaves, until a time at which the freeze ends by itself."""
    MOVED = "moved"
    """Closed in the cell that it left, which names the new one."""
    ARRIVING = "arriving"
    """Copied to its new cell, and frozen there until the old one is closed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OrganizationMove:
    """A move of an organization, as one of the two cells knows it. `cell` is the other one."""

    id: UUID
    state: MoveState
    cell: str
    frozen_until: datetime
