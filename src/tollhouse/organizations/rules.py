"""Pure decisions about organizations."""

from dataclasses import replace

from tollhouse.organizations.errors import OrganizationClosed
from tollhouse.organizations.types import Organization, OrganizationStatus


def with_status(organization: Organization, status: OrganizationStatus) -> Organization:
    """The organization in its next state; nothing leads back from closed."""
    if status is not OrganizationStatus.CLOSED:
        check_open(organization)
    return replace(organization, status=status)


def check_open(organization: Organization) -> None:
    """Nothing is added to a closed organization, and nothing leads back."""
    if organization.status is OrganizationStatus.CLOSED:
        raise OrganizationClosed
