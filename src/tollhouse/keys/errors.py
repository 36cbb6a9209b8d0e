"""How keys fail: at the door, and as things to be managed."""

from tollhouse.base.errors import GatewayError, Kind, ServiceUnavailable
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
        "Whoever holds an Admin API key of the organization makes another with "
        "`POST /manage/v1/organization/admin_api_keys`, the operator with "
        "`tollhouse admin-key create`."
    ),
}


class MissingKey(GatewayError):
    """No credential was sent."""

    kind = Kind.UNAUTHENTICATED
    code = "missing_api_key"

    def __init__(self) -> None:
        super().__init__("No API key was sent. Send it as 'Authorization: Bearer <key>'.")

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The challenge, without an error: nothing was tried."""
        return (("www-authenticate", "Bearer"),)


class InvalidKey(GatewayError):
    """Malformed, unknown, revoked or expired: the answer does not tell which."""

    kind = Kind.UNAUTHENTICATED
    code = "invalid_api_key"

    def __init__(self) -> None:
        super().__init__(
            "The API key is not valid: it is unknown here, incomplete, revoked or expired. Check "
            "that all of it was sent and that it belongs to this gateway, or have a new one made."
        )

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The challenge of RFC 6750."""
        return (("www-authenticate", 'Bearer error="invalid_token"'),)


class WrongKeyType(GatewayError):
    """The key is valid, and the route takes the other kind of key."""

    kind = Kind.DENIED
    code = "wrong_key_type"

    def __init__(self, needed: KeyKind) -> None:
        super().__init__(_NEEDED[needed])


class KeySuspended(GatewayError):
    """An administrator has suspended the key, and can resume it."""

    kind = Kind.DENIED
    code = "key_suspended"

    def __init__(self) -> None:
        super().__init__(
            "The API key is suspended. Use another key, or ask an administrator of the "
            "organization to resume it."
        )


class OrganizationSuspended(GatewayError):
    """The operator has suspended the whole organization."""

    kind = Kind.DENIED
    code = "organization_suspended"

    def __init__(self) -> None:
        super().__init__(
            "The organization is suspended, so that none of its keys works. Only the operator of "
            "this gateway can resume it."
        )


class ProjectArchived(GatewayError):
    """Keys of an archived project admit no new inference."""

    kind = Kind.DENIED
    code = "project_archived"

    def __init__(self) -> None:
        super().__init__(
            "The key's project is archived and starts no new inference. Use a key of another "
            "project."
        )


class InsufficientPermissions(GatewayError):
    """The key is valid and does not hold what the route asks for."""

    kind = Kind.DENIED
    code = "insufficient_permissions"

    def __init__(self, missing: Permission) -> None:
        super().__init__(
            f"The API key lacks the permission '{missing}'. Use a key that holds it, or ask an "
            "administrator of the organization for one."
        )
        self.missing = missing

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The challenge of RFC 6750, with the scope that would do."""
        return (("www-authenticate", f'Bearer error="insufficient_scope", scope="{self.missing}"'),)


class PermissionsExceedCreator(GatewayError):
    """A key can only be given permissions that the key which makes it holds."""

    kind = Kind.DENIED
    code = "insufficient_permissions"

    def __init__(self) -> None:
        super().__init__(
            "An Admin API key can grant only permissions that it holds itself.", param="permissions"
        )


class ExpiryExceedsCreator(GatewayError):
    """A key that an Admin key makes must expire no later than that Admin key."""

    kind = Kind.DENIED
    code = "expiry_exceeds_creator"

    def __init__(self) -> None:
        super().__init__(
            "The creating Admin API key expires, so what it creates needs an 'expires_at' "
            "that is not later.",
            param="expires_at",
        )


class ExpiryExceedsRotator(GatewayError):
    """A secret that an Admin key makes by rotation ends no later than that Admin key does."""

    kind = Kind.DENIED
    code = "expiry_exceeds_creator"

    def __init__(self) -> None:
        super().__init__(
            "The Admin API key expires before the project key does, so it cannot give the project "
            "key a new value. Rotate with an Admin API key that does not expire earlier, or "
            "create a project key with an 'expires_at' that is not later.",
            param="api_key_id",
        )


class KeyNotFound(GatewayError):
    """Unknown, or another organization's: the answer does not tell which."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such API key in this organization. "
            "`GET /manage/v1/organization/projects/{project_id}/api_keys` and "
            "`GET /v1/organization/admin_api_keys` list them.",
            param="api_key_id",
        )


class KeyStateConflict(GatewayError):
    """The key's state does not allow the change."""

    kind = Kind.CONFLICT
    code = "api_key_state_conflict"
    should_retry = False

    def __init__(self, status: str) -> None:
        super().__init__(
            f"The API key is {status}, which does not allow this change. Use another key.",
            param="api_key_id",
        )


class TooManyLookups(ServiceUnavailable):
    """Too many unknown keys wait to be looked up, so that this one was not."""

    def __init__(self) -> None:
        super().__init__("Too many keys wait to be looked up. Try again shortly.")
