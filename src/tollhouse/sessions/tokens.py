"""Signed values that the gateway hands out and gets back: session tokens, and started sign-ins.

A forged or expired value is refused without a query.
"""

import base64
import binascii
import hmac
import struct
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from tollhouse.base.ids import OrganizationId, SessionId
from tollhouse.sessions.rules import TOKEN_LIFETIME
from tollhouse.sessions.types import SessionToken
from tollhouse.storage import master_secrets
from tollhouse.storage.database import Transaction
from tollhouse.storage.master_secrets import MasterSecrets

TOKEN_PREFIX: Final = "ths_"  # noqa: S105 - what all tokens begin with
_LABEL: Final = b"tollhouse console session v1 "
_TAG_BYTES: Final = 32
_EXPIRY: Final = struct.Struct(">Q")
_UUID_BYTES: Final = 16


class Signer:
    """Signs values of one `purpose` with keys that are derived from the master secrets."""

    def __init__(self, masters: MasterSecrets, purpose: str) -> None:
        self._masters = masters
        self._keys = {
            master_id: hmac.digest(secret, _LABEL + purpose.encode(), "sha256")
            for master_id, secret in masters.by_id.items()
        }

    async def sign(self, tx: Transaction, content: bytes, *, expires_at: datetime) -> str:
        """Return a signed text that every live worker can verify until `expires_at`."""
        master_id = await master_secrets.writing_id(tx, self._masters)
        signed = _EXPIRY.pack(int(expires_at.timestamp())) + content
        tag = hmac.digest(self._keys[master_id], signed, "sha256")
        return base64.urlsafe_b64encode(tag + signed).decode().rstrip("=")

    def verify(self, text: str, *, now: datetime) -> bytes | None:
        """Return the content of a signed text, or None if it is forged or expired."""
        try:
            decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        tag, signed = decoded[:_TAG_BYTES], decoded[_TAG_BYTES:]
        expected = [hmac.digest(key, signed, "sha256") for key in self._keys.values()]
        if not any(hmac.compare_digest(tag, one) for one in expected):
            return None
        (expires_at_seconds,) = _EXPIRY.unpack(signed[: _EXPIRY.size])
        is_expired = now >= datetime.fromtimestamp(expires_at_seconds, UTC)
        return None if is_expired else signed[_EXPIRY.size :]


class SessionTokens:
    """Writes and reads the bearer tokens of sessions."""

    def __init__(self, masters: MasterSecrets) -> None:
        self._signer = Signer(masters, "token")

    async def write(
        self,
        tx: Transaction,
        session_id: SessionId,
        organization_id: OrganizationId,
        *,
        now: datetime,
    ) -> str:
        """Return a token with which the session acts in an organization for five minutes."""
        content = session_id.bytes + organization_id.bytes
        return TOKEN_PREFIX + await self._signer.sign(tx, content, expires_at=now + TOKEN_LIFETIME)

    def read(self, text: str, *, now: datetime) -> SessionToken | None:
        """Return what a token says, or None if it is no token, or an expired one."""
        if not text.startswith(TOKEN_PREFIX):
            return None
        content = self._signer.verify(text.removeprefix(TOKEN_PREFIX), now=now)
        if content is None:
            return None
        return SessionToken(
            session_id=SessionId(UUID(bytes=content[:_UUID_BYTES])),
            organization_id=OrganizationId(UUID(bytes=content[_UUID_BYTES:])),
        )
