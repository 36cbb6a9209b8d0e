"""Pure rules for organizations."""

from dataclasses import replace

from tollhouse.organizations.errors import OrganizationClosed
from tollhouse.organizations.types import Organization, OrganizationStatus


def with_status(organization: Organization, status: OrganizationStatus) -> Organization:
    """Return the organization with `status`; raise `OrganizationClosed` if that would reopen it."""
    if status is not OrganizationStatus.CLOSED:
        check_open(organization)
    return replace(organization, status=status)


def check_open(organization: Organization) -> None:
    """Raise `OrganizationClosed` if the organization is closed, which is final."""
    if organization.status is OrganizationStatus.CLOSED:
        raise OrganizationClosed
