"""Operations on keys, in the caller's transaction."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from tollhouse.base.clock import Clock
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectId, ProjectKeyId
from tollhouse.base.permissions import Permission
from tollhouse.base.quotas import Quota
from tollhouse.keys import lookup, rules, store
from tollhouse.keys.errors import KeyNotFound
from tollhouse.keys.types import Admin, AdminKey, KeyKind, NewSecret, ProjectKey, RequiredPermission
from tollhouse.storage import audit, quotas
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database, Mutation, Transaction
from tollhouse.storage.leases import PURGE_EVERY_SECONDS, LeasedJob


async def require_room_for_project_key(tx: Mutation, quota: int) -> None:
    """Raise `QuotaExceeded` if `quota` project keys are neither revoked nor expired."""
    await quotas.require_room(tx, Quota.PROJECT_KEYS, quota, store.count_project_keys)


async def require_room_for_admin_key(tx: Mutation, quota: int) -> None:
    """Raise `QuotaExceeded` if `quota` Admin keys are neither revoked nor expired."""
    await quotas.require_room(tx, Quota.ADMIN_KEYS, quota, store.count_admin_keys)


async def create_project_key(
    tx: Mutation,
    secret: NewSecret,
    *,
    key_id: ProjectKeyId,
    project: tuple[ProjectId, str],
    name: str,
    permissions: tuple[str, ...] = rules.DEFAULT_CUSTOMER_PERMISSIONS,
    allowed_models: tuple[str, ...] | None = None,
    expires_at: datetime | None = None,
) -> ProjectKey:
    """Create a key for a project. The caller must have checked that the project is active."""
    project_id, project_name = project
    key = ProjectKey(
        organization_id=tx.organization_id,
        id=key_id,
        project_id=project_id,
        project_name=project_name,
        name=name,
        redacted_value=secret.redacted_value,
        permissions=permissions,
        allowed_models=allowed_models,
        created_at=tx.now,
        last_used_at=None,
        expires_at=expires_at,
        suspended_at=None,
        revoked_at=None,
    )
    await store.insert_project_key(tx, key)
    await store.insert_secret(tx, tx.organization_id, KeyKind.PROJECT, key_id, secret)
    await _audit_project_key(tx, "project_api_key.create", before=None, after=key)
    return key


async def rotate_project_key(
    tx: Mutation,
    secret: NewSecret,
    *,
    project_id: ProjectId,
    key_id: ProjectKeyId,
    overlap: timedelta,
    rotator: Admin | None,
) -> ProjectKey:
    """Give a key a new secret. The current one expires after `overlap`, older ones now."""
    key = await _held(tx, project_id, key_id)
    rotated = rules.rotate(
        key, redacted_value=secret.redacted_value, now=tx.now, overlap=overlap, rotator=rotator
    )
    await store.expire_secrets(tx, tx.organization_id, key_id, at=tx.now + overlap)
    await store.insert_secret(tx, tx.organization_id, KeyKind.PROJECT, key_id, secret)
    await store.save_project_key(tx, rotated)
    await _audit_project_key(tx, "project_api_key.rotate", before=key, after=rotated)
    return rotated


async def end_previous_value(
    tx: Mutation, project_id: ProjectId, key_id: ProjectKeyId
) -> ProjectKey:
    """End the overlap of a rotation: the value before the last rotation stops working."""
    key = await _held(tx, project_id, key_id)
    ended = rules.end_previous_value(key, now=tx.now)
    if ended == key:
        tx.unchanged()
        return key
    await store.end_previous_secret(tx, tx.organization_id, key_id)
    await _audit_project_key(tx, "project_api_key.end_previous", before=key, after=ended)
    return ended


async def suspend_project_key(
    tx: Mutation, project_id: ProjectId, key_id: ProjectKeyId
) -> ProjectKey:
    """Suspend a key until it is resumed."""
    return await _change(tx, project_id, key_id, "project_api_key.suspend", rules.suspend)


async def resume_project_key(
    tx: Mutation, project_id: ProjectId, key_id: ProjectKeyId
) -> ProjectKey:
    """Resume a suspended key."""
    return await _change(tx, project_id, key_id, "project_api_key.resume", rules.resume)


async def revoke_project_key(
    tx: Mutation, project_id: ProjectId, key_id: ProjectKeyId
) -> ProjectKey:
    """Revoke a key, which is final."""
    return await _change(tx, project_id, key_id, "project_api_key.revoke", rules.revoke)


async def _change(
    tx: Mutation,
    project_id: ProjectId,
    key_id: ProjectKeyId,
    action: str,
    rule: Callable[..., ProjectKey],
) -> ProjectKey:
    key = await _held(tx, project_id, key_id)
    changed = rule(key, now=tx.now)
    if changed == key:
        tx.unchanged()
        return key
    await store.save_project_key(tx, changed)
    await _audit_project_key(tx, action, before=key, after=changed)
    return changed


async def _held(tx: Mutation, project_id: ProjectId, key_id: ProjectKeyId) -> ProjectKey:
    key = await store.get_project_key_for_update(tx, tx.organization_id, key_id)
    if key is None or key.project_id != project_id:
        raise KeyNotFound
    return key


async def retrieve_project_key(
    tx: Transaction,
    organization_id: OrganizationId,
    project_id: ProjectId,
    key_id: ProjectKeyId,
) -> ProjectKey:
    """Return a key of a project, whatever its state, or raise `KeyNotFound`."""
    key = await store.get_project_key(tx, organization_id, key_id)
    if key is None or key.project_id != project_id:
        raise KeyNotFound
    return key


async def find_project_key(
    tx: Transaction, organization_id: OrganizationId, key_id: ProjectKeyId
) -> ProjectKey:
    """Return a key of any project, for the operator, or raise `KeyNotFound`."""
    key = await store.get_project_key(tx, organization_id, key_id)
    if key is None:
        raise KeyNotFound
    return key


async def page_of_project_keys(
    tx: Transaction,
    organization_id: OrganizationId,
    project_id: ProjectId,
    *,
    after: ProjectKeyId | None,
    limit: int,
) -> list[ProjectKey]:
    """Return a page of a project's keys in order of creation.

    Raises `UnknownCursor` if `after` is not a key of this project.
    """
    if after is not None:
        cursor = await store.get_project_key(tx, organization_id, after)
        if cursor is None or cursor.project_id != project_id:
            raise UnknownCursor
    return await store.page_of_project_keys(
        tx, organization_id, project_id, after=after, limit=limit
    )


async def project_key_names(
    tx: Transaction, organization_id: OrganizationId, key_ids: Sequence[ProjectKeyId]
) -> dict[ProjectKeyId, tuple[str, str]]:
    """Return the name of each key with that of its project."""
    return await store.project_key_names(tx, organization_id, key_ids)


async def create_admin_key(
    tx: Mutation,
    secret: NewSecret,
    *,
    key_id: AdminKeyId,
    name: str,
    permissions: tuple[str, ...] | None,
    expires_at: datetime | None = None,
) -> AdminKey:
    """Create an Admin key. The caller must have checked `permissions` by `rules.granted`."""
    key = AdminKey(
        organization_id=tx.organization_id,
        id=key_id,
        name=name,
        redacted_value=secret.redacted_value,
        permissions=permissions,
        created_at=tx.now,
        last_used_at=None,
        expires_at=expires_at,
        revoked_at=None,
    )
    await store.insert_admin_key(tx, key)
    await store.insert_secret(tx, tx.organization_id, KeyKind.ADMIN, key_id, secret)
    await _audit_admin_key(tx, "admin_api_key.create", before=None, after=key)
    return key


async def revoke_admin_key(tx: Mutation, key_id: AdminKeyId) -> AdminKey:
    """Revoke an Admin key, which is final. It may be the caller's own, or the last one."""
    key = await store.get_admin_key_for_update(tx, tx.organization_id, key_id)
    if key is None:
        raise KeyNotFound
    if key.revoked_at is not None:
        tx.unchanged()
        return key
    revoked = replace(key, revoked_at=tx.now)
    await store.save_admin_key(tx, revoked)
    await _audit_admin_key(tx, "admin_api_key.revoke", before=key, after=revoked)
    return revoked


async def narrow_admin_key(
    tx: Mutation, key_id: AdminKeyId, permissions: tuple[str, ...]
) -> AdminKey:
    """Take permissions from an Admin key, which keeps its secret. Raises as `rules.narrow` does."""
    key = await store.get_admin_key_for_update(tx, tx.organization_id, key_id)
    if key is None:
        raise KeyNotFound
    narrowed = rules.narrow(key, permissions, now=tx.now)
    if narrowed == key:
        tx.unchanged()
        return key
    await store.save_admin_key(tx, narrowed)
    await _audit_admin_key(tx, "admin_api_key.narrow", before=key, after=narrowed)
    return narrowed


async def retrieve_admin_key(
    tx: Transaction, organization_id: OrganizationId, key_id: AdminKeyId
) -> AdminKey:
    """Return an Admin key, revoked or not, or raise `KeyNotFound`."""
    key = await store.get_admin_key(tx, organization_id, key_id)
    if key is None:
        raise KeyNotFound
    return key


async def retrieve_unrevoked_admin_key(
    tx: Transaction, organization_id: OrganizationId, key_id: AdminKeyId
) -> AdminKey:
    """Return an Admin key, or raise `KeyNotFound` if it does not exist or was revoked."""
    key = await retrieve_admin_key(tx, organization_id, key_id)
    if key.revoked_at is not None:
        raise KeyNotFound
    return key


async def require_working_admin_key(
    tx: Mutation, key_id: AdminKeyId, *, permission: Permission, now: datetime
) -> Admin:
    """Return the key's present permissions and lock it until the commit.

    Raises as `rules.authorize` does.
    """
    known = await lookup.get_admin_caller_for_share(tx, tx.organization_id, key_id)
    demand = RequiredPermission(kind=KeyKind.ADMIN, permission=permission, survives_archive=False)
    caller = rules.authorize(known, demand, now=now)
    assert isinstance(caller, Admin), "the kind of the key was demanded"
    return caller


async def page_of_admin_keys(
    tx: Transaction,
    organization_id: OrganizationId,
    *,
    after: AdminKeyId | None,
    limit: int,
    newest_first: bool = False,
) -> list[AdminKey]:
    """Return a page of Admin keys that are not revoked.

    Raises `UnknownCursor` if `after` is not an Admin key, revoked or not, of the organization.
    """
    if after is not None and await store.get_admin_key(tx, organization_id, after) is None:
        raise UnknownCursor
    read = store.page_of_admin_keys_newest_first if newest_first else store.page_of_admin_keys
    return await read(tx, organization_id, after=after, limit=limit)


async def _audit_project_key(
    tx: Mutation, action: str, *, before: ProjectKey | None, after: ProjectKey
) -> None:
    await audit.record(
        tx,
        action=action,
        resource=("project_api_key", after.id),
        before=before,
        after=after,
    )


async def _audit_admin_key(
    tx: Mutation, action: str, *, before: AdminKey | None, after: AdminKey
) -> None:
    await audit.record(
        tx,
        action=action,
        resource=("admin_api_key", after.id),
        before=before,
        after=after,
    )


async def purge_expired_secrets(database: Database, now: datetime) -> int:
    """Delete secrets, but not keys, that a rotation expired over a day ago; return how many."""
    expired_before = now - timedelta(days=1)
    return await in_batches(
        database, partial(store.delete_expired_secrets, expired_before=expired_before)
    )


def purge_job(database: Database, clock: Clock) -> LeasedJob:
    """Return the job that deletes expired secrets of rotated keys."""

    async def purge() -> None:
        await purge_expired_secrets(database, clock.now())

    return LeasedJob(name="key-secrets", every_seconds=PURGE_EVERY_SECONDS, run=purge)
