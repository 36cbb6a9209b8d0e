"""The organization, and the states that it can be in."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tollhouse.base.ids import OrganizationId


class OrganizationStatus(StrEnum):
    """Suspension can be lifted; closing is final."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    CLOSED = "closed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Organization:
    """One customer, with its own projects, keys, policies and money."""

    id: OrganizationId
    name: str
    status: OrganizationStatus
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class GrantedCheck:
    """What an organization was found to fulfil; models may require it."""

    organization_id: OrganizationId
    name: str
    granted_at: datetime
