"""Pure rules for keys: authorization and changes of state."""

from dataclasses import replace
from datetime import datetime, timedelta

from tollhouse.base.errors import OrganizationMoving
from tollhouse.base.permissions import CUSTOMER_PERMISSIONS, Permission
from tollhouse.keys.errors import (
    ExpiryExceedsCreator,
    ExpiryExceedsRotator,
    InsufficientPermissions,
    InvalidKey,
    KeyStateConflict,
    KeySuspended,
    OrganizationMoved,
    OrganizationSuspended,
    PermissionsExceedCreator,
    PermissionsNotHeld,
    ProjectArchived,
    WrongCell,
    WrongKeyType,
)
from tollhouse.keys.types import (
    Admin,
    AdminKey,
    Caller,
    KeyKind,
    KeyStatus,
    KnownKey,
    ProjectKey,
    RequiredPermission,
)

DEFAULT_CUSTOMER_PERMISSIONS = tuple(sorted(CUSTOMER_PERMISSIONS))


def check_cell(named: str | None, own: str | None) -> None:
    """Raise `WrongCell` for an unknown key whose prefix names another cell than our own."""
    if named is not None and named != own:
        raise WrongCell(cell=named)


def authorize(known: KnownKey | None, demand: RequiredPermission, *, now: datetime) -> Caller:
    """Return the caller of a key; raise if the key is not valid or does not fulfil `demand`."""
    if known is None or known.is_revoked or known.organization_status == "closed":
        raise InvalidKey
    if known.expires_at is not None and now >= known.expires_at:
        raise InvalidKey
    if known.kind is not demand.kind:
        raise WrongKeyType(demand.kind)
    if known.is_moved:
        raise OrganizationMoved(cell=known.move_cell or "")
    if known.frozen_until is not None and now < known.frozen_until:
        raise OrganizationMoving
    if known.organization_status == "suspended":
        raise OrganizationSuspended
    if known.is_suspended:
        raise KeySuspended
    if known.is_project_archived and not demand.survives_archive:
        raise ProjectArchived
    if not known.holds_all and demand.permission not in known.permissions:
        raise InsufficientPermissions(missing=demand.permission)
    return known.caller


def working_admin(known: KnownKey | None, *, now: datetime) -> Admin:
    """Return the caller of an Admin key that works, whatever its permissions are.

    Raises as `authorize` does.
    """
    if known is None:
        raise InvalidKey
    demand = RequiredPermission(
        kind=KeyKind.ADMIN, permission=Permission.AUDIT_READ, survives_archive=False
    )
    authorize(replace(known, holds_all=True), demand, now=now)
    assert isinstance(known.caller, Admin), "the kind of the key was demanded"
    return known.caller


def status(key: ProjectKey, *, now: datetime) -> KeyStatus:
    """Return the state of a key. Revoked precedes expired, which precedes suspended."""
    if key.revoked_at is not None:
        return KeyStatus.REVOKED
    if key.expires_at is not None and key.expires_at <= now:
        return KeyStatus.EXPIRED
    if key.suspended_at is not None:
        return KeyStatus.SUSPENDED
    return KeyStatus.ACTIVE


def is_alive(key: AdminKey, *, now: datetime) -> bool:
    """Return whether an Admin key is neither revoked nor expired."""
    return key.revoked_at is None and (key.expires_at is None or now < key.expires_at)


def suspend(key: ProjectKey, *, now: datetime) -> ProjectKey:
    """Return the suspended key, unchanged if it is suspended already.

    Raises `KeyStateConflict` if the key is revoked or expired.
    """
    match status(key, now=now):
        case KeyStatus.ACTIVE:
            return replace(key, suspended_at=now)
        case KeyStatus.SUSPENDED:
            return key
        case final:
            raise KeyStateConflict(status=final)


def resume(key: ProjectKey, *, now: datetime) -> ProjectKey:
    """Return the resumed key, unchanged if it is active already.

    Raises `KeyStateConflict` if the key is revoked or expired.
    """
    match status(key, now=now):
        case KeyStatus.SUSPENDED:
            return replace(key, suspended_at=None)
        case KeyStatus.ACTIVE:
            return key
        case final:
            raise KeyStateConflict(status=final)


def revoke(key: ProjectKey, *, now: datetime) -> ProjectKey:
    """Return the revoked key, unchanged if it is revoked already."""
    return key if key.revoked_at is not None else replace(key, revoked_at=now)


def previous_value_expires_at(key: ProjectKey, *, now: datetime) -> datetime | None:
    """Return until when the value before the last rotation works, or None if it does not."""
    ends_at = key.previous_value_expires_at
    is_over = status(key, now=now) in (KeyStatus.REVOKED, KeyStatus.EXPIRED)
    if ends_at is None or ends_at <= now or is_over:
        return None
    return ends_at if key.expires_at is None else min(ends_at, key.expires_at)


def end_previous_value(key: ProjectKey, *, now: datetime) -> ProjectKey:
    """Return the key whose value before the last rotation ends now, unchanged if it ended."""
    if previous_value_expires_at(key, now=now) is None:
        return key
    return replace(key, previous_value_expires_at=now)


def rotate(
    key: ProjectKey,
    *,
    redacted_value: str,
    now: datetime,
    overlap: timedelta,
    rotator: Admin | None,
) -> ProjectKey:
    """Return the key with the redacted value of its new secret, and when the present one ends.

    Raises `KeyStateConflict` unless the key is active, and `ExpiryExceedsRotator` if it outlives
    the rotator. The command line passes no rotator and is not bound by its expiry.
    """
    current = status(key, now=now)
    if current is not KeyStatus.ACTIVE:
        raise KeyStateConflict(status=current)
    if rotator is not None and _outlives(key.expires_at, rotator):
        raise ExpiryExceedsRotator
    return replace(key, redacted_value=redacted_value, previous_value_expires_at=now + overlap)


def granted(creator: Admin | None, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the permissions of a new Admin key, where None means all permissions.

    Raises `PermissionsExceedCreator` if the creator lacks one of them. The command line passes no
    creator and may grant all permissions.
    """
    if creator is None or creator.holds_all:
        return wanted
    if wanted is None or not set(wanted) <= creator.permissions:
        raise PermissionsExceedCreator
    return wanted


def narrow(key: AdminKey, permissions: tuple[str, ...], *, now: datetime) -> AdminKey:
    """Return the key with only these permissions, unchanged if it has exactly these already.

    Raises `KeyStateConflict` if the key is revoked or expired, and `PermissionsNotHeld` if the key
    does not have one of the permissions.
    """
    if not is_alive(key, now=now):
        ended = KeyStatus.EXPIRED if key.revoked_at is None else KeyStatus.REVOKED
        raise KeyStateConflict(status=ended)
    added = [] if key.permissions is None else sorted(set(permissions) - set(key.permissions))
    if added:
        raise PermissionsNotHeld(added=added[0])
    is_same = key.permissions is not None and set(key.permissions) == set(permissions)
    return key if is_same else replace(key, permissions=permissions)


def check_expiry(creator: Admin, expires_at: datetime | None) -> None:
    """Raise `ExpiryExceedsCreator` if a new key would expire after its creator, or never."""
    if _outlives(expires_at, creator):
        raise ExpiryExceedsCreator


def _outlives(expires_at: datetime | None, admin: Admin) -> bool:
    if admin.expires_at is None:
        return False
    return expires_at is None or expires_at > admin.expires_at
