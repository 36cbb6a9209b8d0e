"""Pure rules for sessions."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.sessions.types import GroupGrant, HeldPermissions

LIFETIME: Final = timedelta(hours=12)
TOKEN_LIFETIME: Final = timedelta(minutes=5)
ORGANIZATIONS_PER_PERSON_MAX: Final = 100
SESSIONS_PER_OWNER_MAX: Final = 20
"""A further sign-in of the same key or person ends the oldest session."""


def granted_organizations(
    grants: Iterable[GroupGrant], groups: Collection[str]
) -> tuple[OrganizationId, ...]:
    """Return the first organizations in which members of `groups` may act, as grants name them."""
    found = (grant.organization_id for grant in grants if grant.group in groups)
    return tuple(dict.fromkeys(found))[:ORGANIZATIONS_PER_PERSON_MAX]


def held_permissions(
    grants: Iterable[GroupGrant], groups: Collection[str], organization_id: OrganizationId
) -> HeldPermissions | None:
    """Return what members of all these groups may do in an organization, or None for nothing."""
    held = [
        grant.permissions
        for grant in grants
        if grant.group in groups and grant.organization_id == organization_id
    ]
    if not held:
        return None
    return HeldPermissions(
        permissions=frozenset[str]().union(*(each for each in held if each is not None)),
        holds_all=None in held,
    )
