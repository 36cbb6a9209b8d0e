"""Pure decisions about organizations."""

from dataclasses import replace

from tollhouse.organizations.errors import OrganizationClosed
from tollhouse.organizations.types import Organization, OrganizationStatus


def with_status(organization: Organization, status: OrganizationStatus) -> Organization:
    """The organization in its next state; nothing leads back from closed."""
    if organization.status is OrganizationStatus.CLOSED and status is not OrganizationStatus.CLOSED:
        raise OrganizationClosed
    return replace(organization, status=status)
