"""Names for a content that nobody outside can guess, and that do not tell what it says.

The fence and the replica follow from how a conversation begins, so that they stay the same while
it grows and a judge finds the beginning in its prefix cache.
"""

import hmac

from tollhouse.base.ids import OrganizationId
from tollhouse.judging.types import Content, Seal
from tollhouse.judging.windows import Sheet

_PURPOSE = b"tollhouse judging v1"
_FENCE_LENGTH = 32


class Seals:
    """One per worker."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, _PURPOSE, "sha256")

    def of(
        self,
        organization_id: OrganizationId,
        content: Content,
        sheet: Sheet,
        *,
        opening: bytes | None = None,
    ) -> Seal:
        """The same for the same organization, content and opening, and for no other."""
        key = hmac.digest(self._secret, organization_id.bytes, "sha256")
        told = b"opening" + _opening(content) if opening is None else b"given" + opening
        begun = hmac.digest(key, told, "sha256")
        return Seal(
            fence=hmac.digest(begun, b"fence", "sha256").hex()[:_FENCE_LENGTH],
            affinity=hmac.digest(begun, b"affinity", "sha256"),
            digest=hmac.digest(key, b"content" + sheet.text.encode(), "sha256"),
            cache_salt=hmac.digest(key, b"salt", "sha256").hex(),
        )


def _opening(content: Content) -> bytes:
    texts = (part.text.encode() for part in content.parts[: content.opening])
    return b"".join(len(text).to_bytes(8) + text for text in texts)
