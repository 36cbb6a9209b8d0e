"""Verbs on organizations, in the caller's transaction."""

from tollhouse.base.ids import OrganizationId
from tollhouse.organizations import rules, store
from tollhouse.organizations.errors import OrganizationNotFound
from tollhouse.organizations.types import Organization, OrganizationStatus
from tollhouse.storage import audit
from tollhouse.storage.database import Mutation, Transaction


async def create(tx: Mutation, *, name: str) -> Organization:
    """Open an organization under the ID that the mutation is about."""
    organization = Organization(
        id=tx.organization_id,
        name=name,
        status=OrganizationStatus.ACTIVE,
        created_at=tx.now,
    )
    await store.insert(tx, organization)
    await audit.record(
        tx,
        action="organization.create",
        resource=("organization", organization.id),
        before=None,
        after=organization,
    )
    return organization


async def set_status(tx: Mutation, status: OrganizationStatus) -> Organization:
    """Suspend, reactivate or close; its keys follow within a second on every worker."""
    organization = await store.get_for_update(tx, tx.organization_id)
    if organization is None:
        raise OrganizationNotFound
    changed = rules.with_status(organization, status)
    if changed == organization:
        tx.unchanged()
        return organization
    await store.save_status(tx, changed)
    await audit.record(
        tx,
        action=f"organization.{status}",
        resource=("organization", organization.id),
        before=organization,
        after=changed,
    )
    return changed


async def require_open(tx: Mutation) -> None:
    """For what may only be added to an organization that is not closed, nor is until the commit."""
    organization = await store.get_for_key_share(tx, tx.organization_id)
    if organization is None:
        raise OrganizationNotFound
    rules.check_open(organization)


async def retrieve(tx: Transaction, organization_id: OrganizationId) -> Organization:
    """Read one, whatever its state."""
    organization = await store.get(tx, organization_id)
    if organization is None:
        raise OrganizationNotFound
    return organization


async def page(tx: Transaction, *, after: OrganizationId | None, limit: int) -> list[Organization]:
    """For the operator: in order of creation."""
    return await store.page(tx, after=after, limit=limit)
