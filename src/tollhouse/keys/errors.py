"""Errors of authentication and of managing keys."""

from tollhouse.base.errors import GatewayError, InvalidInput, Kind, ServiceUnavailable
from tollhouse.base.permissions import Permission
from tollhouse.keys.types import KeyKind

_NEEDED = {
    KeyKind.PROJECT: (
        "This route takes a project key, which begins with 'thp_', and an Admin API key was sent. "
        "Make a project key with `POST /v1/organization/projects/{project_id}/api_keys`, in the "
        "console at /console, or with `tollhouse key create`."
    ),
    KeyKind.ADMIN: (
        "This route takes an Admin API key, which begins with 'tha_', and a project key was sent. "
        "Create one with another Admin API key of the organization by "
        "`POST /manage/v1/organization/admin_api_keys`, or let the operator run "
        "`tollhouse admin-key create`."
    ),
}


class MissingKey(GatewayError):
    """The request has no credential."""

    kind = Kind.UNAUTHENTICATED
    code = "missing_api_key"
    template = "No API key was sent. Send it as 'Authorization: Bearer <key>'."

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the challenge of RFC 6750 without an error, because no key was sent."""
        return (("www-authenticate", "Bearer"),)


class InvalidKey(GatewayError):
    """The key is malformed, unknown, revoked or expired."""

    kind = Kind.UNAUTHENTICATED
    code = "invalid_api_key"
    template = (
        "The API key is not valid: it is unknown here, incomplete, revoked or expired. Check that "
        "all of it was sent and that it belongs to this gateway, or have a new one made."
    )

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the challenge of RFC 6750."""
        return (("www-authenticate", 'Bearer error="invalid_token"'),)


class WrongCell(GatewayError):
    """The key is not known here, and its prefix names another cell."""

    kind = Kind.UNAUTHENTICATED
    code = "wrong_cell"
    template = (
        "The API key is not known here. Its prefix names the cell '{self.cell}', and this gateway "
        "serves another one. Send it to the address of its own cell."
    )
    cell: str

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the challenge of RFC 6750."""
        return (("www-authenticate", 'Bearer error="invalid_token"'),)


class WrongKeyType(GatewayError):
    """The key is valid, and the route takes the other kind of key."""

    kind = Kind.DENIED
    code = "wrong_key_type"
    template = "{self.needed}"

    def __init__(self, needed: KeyKind) -> None:
        super().__init__(needed=_NEEDED[needed])


class KeySuspended(GatewayError):
    """An administrator has suspended the key, and can resume it."""

    kind = Kind.DENIED
    code = "key_suspended"
    template = (
        "The API key is suspended. Use another key, or ask an administrator of the organization to "
        "resume it."
    )


class OrganizationSuspended(GatewayError):
    """The operator has suspended the organization."""

    kind = Kind.DENIED
    code = "organization_suspended"
    template = (
        "The organization is suspended, so that none of its keys works. Only the operator of this "
        "gateway can resume it."
    )


class OrganizationMoved(GatewayError):
    """The organization lives in another cell now; the proxy in front will soon route to it."""

    kind = Kind.UNAVAILABLE
    code = "organization_moved"
    retry_after_seconds = 1
    template = (
        "The organization has moved to the cell '{self.cell}'. Send the request to that cell, or "
        "again to the common address, which will soon route the key to it."
    )
    cell: str


class ProjectArchived(GatewayError):
    """The project of the key is archived, and allows no new inference."""

    kind = Kind.DENIED
    code = "project_archived"
    template = (
        "The key's project is archived and starts no new inference. Use a key of another project."
    )


class InsufficientPermissions(GatewayError):
    """The key is valid and lacks the permission of the route."""

    kind = Kind.DENIED
    code = "insufficient_permissions"
    template = (
        "The API key lacks the permission '{self.missing}'. Use a key that holds it, or ask an "
        "administrator of the organization for one."
    )
    missing: Permission

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the challenge of RFC 6750 with the missing scope."""
        return (("www-authenticate", f'Bearer error="insufficient_scope", scope="{self.missing}"'),)


class PermissionsExceedCreator(GatewayError):
    """An Admin key can only grant permissions that it has."""

    kind = Kind.DENIED
    code = "insufficient_permissions"
    param = "permissions"
    template = "An Admin API key can grant only permissions that it holds itself."


class PermissionsNotHeld(InvalidInput):
    """Narrowing a key can only take permissions away."""

    param = "permissions"
    template = (
        "The Admin API key does not hold the permission '{self.added}', and a change of its "
        "permissions can only take some away. Create a new key if more are needed."
    )
    added: str


class ExpiryExceedsCreator(GatewayError):
    """A new key must not expire later than the Admin key that creates it."""

    kind = Kind.DENIED
    code = "expiry_exceeds_creator"
    param = "expires_at"
    template = (
        "The creating Admin API key expires, so what it creates needs an 'expires_at' that is not "
        "later."
    )


class ExpiryExceedsRotator(GatewayError):
    """A rotated key must not expire later than the Admin key that rotates it."""

    kind = Kind.DENIED
    code = "expiry_exceeds_creator"
    param = "api_key_id"
    template = (
        "The Admin API key expires before the project key does, so it cannot give the project key "
        "a new value. Rotate with an Admin API key that does not expire earlier, or create a "
        "project key with an 'expires_at' that is not later."
    )


class KeyNotFound(GatewayError):
    """The key does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"
    param = "api_key_id"
    template = (
        "No such API key in this organization. `GET "
        "/manage/v1/organization/projects/{{project_id}}/api_keys` and `GET "
        "/v1/organization/admin_api_keys` list them."
    )


class KeyStateConflict(GatewayError):
    """The key's state does not allow the change."""

    kind = Kind.CONFLICT
    code = "api_key_state_conflict"
    should_retry = False
    param = "api_key_id"
    template = "The API key is {self.status}, which does not allow this change. Use another key."
    status: str


class TooManyLookups(ServiceUnavailable):
    """Too many unknown keys wait for a lookup in the database."""

    template = "Too many keys wait to be looked up. Try again shortly."
