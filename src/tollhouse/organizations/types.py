"""The organization, its status, and its granted checks."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

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
