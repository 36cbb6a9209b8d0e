"""Keys of a content, derived with a secret: callers can neither guess them nor read them back.

Delimiter and affinity follow from the opening of a conversation. They stay the same while it
grows, so that the judge finds the opening in its prefix cache.
"""

import hmac

from tollhouse.base.ids import OrganizationId
from tollhouse.evaluation.content.windows import RenderedContent
from tollhouse.evaluation.types import Content, JudgeRequestKeys

_PURPOSE = b"tollhouse judging v1"
_DELIMITER_LENGTH = 32
_DELIMITER_PURPOSE = b"fence"
"""Never changes: another value would change every delimiter, and so the judge's prefix cache."""


class JudgeRequestKeyDeriver:
    """Derives keys with the gateway's secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, _PURPOSE, "sha256")

    def derive(
        self,
        organization_id: OrganizationId,
        content: Content,
        rendered: RenderedContent,
        *,
        opening: bytes | None = None,
    ) -> JudgeRequestKeys:
        """Return the keys of a content. `opening` replaces the opening of the content itself."""
        key = hmac.digest(self._secret, organization_id.bytes, "sha256")
        begin = b"opening" + _opening(content) if opening is None else b"given" + opening
        opening_key = hmac.digest(key, begin, "sha256")
        return JudgeRequestKeys(
            delimiter=hmac.digest(opening_key, _DELIMITER_PURPOSE, "sha256").hex()[
                :_DELIMITER_LENGTH
            ],
            affinity=hmac.digest(opening_key, b"affinity", "sha256"),
            digest=hmac.digest(key, b"content" + rendered.text.encode(), "sha256"),
            cache_salt=hmac.digest(key, b"salt", "sha256").hex(),
        )


def _opening(content: Content) -> bytes:
    texts = (part.text.encode() for part in content.parts[: content.opening])
    return b"".join(len(text).to_bytes(8) + text for text in texts)
