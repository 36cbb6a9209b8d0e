"""Operations on organizations, in the caller's transaction."""

from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.organizations import rules, store
from tollhouse.organizations.errors import OrganizationNotFound, TooManyChecks
from tollhouse.organizations.types import GrantedCheck, Organization, OrganizationStatus
from tollhouse.storage import audit
from tollhouse.storage.database import Mutation, Transaction

CHECKS_MAX: Final = 100


async def create(tx: Mutation, *, name: str) -> Organization:
    """Create an organization with the mutation's organization ID."""
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
    """Suspend, reactivate or close the organization; workers apply it to keys within a second."""
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
    """Raise `OrganizationClosed` if it is closed, and keep it from closing until the commit."""
    organization = await store.get_for_key_share(tx, tx.organization_id)
    if organization is None:
        raise OrganizationNotFound
    rules.check_open(organization)


async def retrieve(tx: Transaction, organization_id: OrganizationId) -> Organization:
    """Return an organization, whatever its status, or raise `OrganizationNotFound`."""
    organization = await store.get(tx, organization_id)
    if organization is None:
        raise OrganizationNotFound
    return organization


async def page(tx: Transaction, *, after: OrganizationId | None, limit: int) -> list[Organization]:
    """Return a page of all organizations in order of creation, for the operator."""
    return await store.page(tx, after=after, limit=limit)


async def grant_check(tx: Mutation, name: str) -> GrantedCheck:
    """Grant a check, which allows the models that require it. A second grant changes nothing.

    Locks the organization's row, so that the second of two grants sees the first.
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
        raise TooManyChecks(checks_max=CHECKS_MAX)
    check = GrantedCheck(organization_id=tx.organization_id, name=name, granted_at=tx.now)
    await store.insert_check(tx, check)
    await _audit_check(tx, "organization_check.grant", before=None, after=check)
    return check


async def revoke_check(tx: Mutation, name: str) -> None:
    """Revoke a check, which blocks the models that require it.

    Changes nothing if the check is not granted.
    """
    if await store.get_for_update(tx, tx.organization_id) is None:
        raise OrganizationNotFound
    check = (await _checks_by_name(tx)).get(name)
    if check is None:
        tx.unchanged()
        return
    await store.delete_check(tx, check)
    await _audit_check(tx, "organization_check.revoke", before=check, after=None)


async def checks(tx: Transaction, organization_id: OrganizationId) -> list[GrantedCheck]:
    """Return all granted checks, ordered by name."""
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
