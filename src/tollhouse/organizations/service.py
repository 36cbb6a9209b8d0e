"""Verbs on organizations, in the caller's transaction."""

from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.organizations import rules, store
from tollhouse.organizations.errors import OrganizationNotFound, TooManyChecks
from tollhouse.organizations.types import GrantedCheck, Organization, OrganizationStatus
from tollhouse.storage import audit
from tollhouse.storage.database import Mutation, Transaction

CHECKS_MAX: Final = 100


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


async def grant_check(tx: Mutation, name: str) -> GrantedCheck:
    """Open the models that require it; granting again changes nothing.

    The organization's row is held, so that of two grants the second sees the first.
    """
    organization = await store.get_for_update(tx, tx.organization_id)
    if organization is None:
        raise OrganizationNotFound
    rules.check_open(organization)
    held = await _checks_by_name(tx)
    if (check := held.get(name)) is not None:
        tx.unchanged()
        return check
    if len(held) >= CHECKS_MAX:
        raise TooManyChecks(CHECKS_MAX)
    check = GrantedCheck(organization_id=tx.organization_id, name=name, granted_at=tx.now)
    await store.insert_check(tx, check)
    await _audit_check(tx, "organization_check.grant", before=None, after=check)
    return check


async def revoke_check(tx: Mutation, name: str) -> None:
    """Lock the models that require it; revoking what was never granted changes nothing."""
    if await store.get_for_update(tx, tx.organization_id) is None:
        raise OrganizationNotFound
    check = (await _checks_by_name(tx)).get(name)
    if check is None:
        tx.unchanged()
        return
    await store.delete_check(tx, check)
    await _audit_check(tx, "organization_check.revoke", before=check, after=None)


async def checks(tx: Transaction, organization_id: OrganizationId) -> list[GrantedCheck]:
    """All of them, by name."""
    return await store.checks(tx, organization_id, limit=CHECKS_MAX)


async def _checks_by_name(tx: Mutation) -> dict[str, GrantedCheck]:
    found = await store.checks(tx, tx.organization_id, limit=CHECKS_MAX)
    return {check.name: check for check in found}


async def _audit_check(
    tx: Mutation, action: str, *, before: GrantedCheck | None, after: GrantedCheck | None
) -> None:
    changed = after or before
    assert changed is not None, "something was granted or revoked"
    await audit.record(
        tx,
        action=action,
        resource=("organization_check", changed.name),
        before=before,
        after=after,
    )
