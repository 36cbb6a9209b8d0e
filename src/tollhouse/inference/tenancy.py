"""Keeping tenants apart behind the gateway: hints of one are never those of another.

Engines keep prefixes by salt and sessions by key. Both are sealed with a secret and with who
asks, so that no tenant can name, or feel, what another has cached.
"""

import hashlib
import hmac
from dataclasses import dataclass

from tollhouse.base.ids import OrganizationId, ProjectId

_PURPOSE = b"tollhouse tenancy v1"


@dataclass(frozen=True, slots=True)
class Tenant:
    """One project of one organization."""

    _key: bytes

    def sealed(self, hint: str) -> str:
        """The same for the same tenant and hint, and for nobody else; 1 to 64 characters."""
        return self._keyed(hint, b"hint").hex()

    def affinity(self, hint: str | None) -> bytes | None:
        """What draws calls to one replica; nothing where the caller gave no hint."""
        if hint is None:
            return None
        return self._keyed(hint, b"affinity")

    def _keyed(self, hint: str, purpose: bytes) -> bytes:
        return hashlib.blake2b(
            hint.encode(), key=self._key, person=purpose, digest_size=32
        ).digest()


class Tenancy:
    """One per worker."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, _PURPOSE, "sha256")

    def of(self, organization_id: OrganizationId, project_id: ProjectId) -> Tenant:
        """Whoever asks."""
        message = organization_id.bytes + project_id.bytes
        return Tenant(hashlib.blake2b(message, key=self._secret, digest_size=32).digest())
