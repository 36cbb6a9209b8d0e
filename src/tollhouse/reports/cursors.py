"""Signed cursors of reports: the first bucket of a page, and the end of the report.

The signature covers the organization and the query, which are not part of the cursor. So a cursor
is short, and valid only for the organization and the query that it was made for.
"""

import base64
import binascii
import hmac
import struct
from collections.abc import Iterable
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.reports.errors import InvalidCursor
from tollhouse.reports.types import CostQuery, PageCursor
from tollhouse.storage import master_secrets
from tollhouse.storage.database import Transaction
from tollhouse.storage.master_secrets import MasterSecrets

_LABEL: Final = b"tollhouse report cursor v1"
_CONTENT: Final = struct.Struct(">QQ")
_TAG_BYTES: Final = 32
_TEXT_LENGTH: Final = 64


class Cursors:
    """Signs and verifies cursors with keys that are derived from the master secrets."""

    def __init__(self, masters: MasterSecrets) -> None:
        self._masters = masters
        self._keys = {
            master_id: hmac.digest(secret, _LABEL, "sha256")
            for master_id, secret in masters.by_id.items()
        }

    async def writing_id(self, tx: Transaction) -> str:
        """Return the master secret to sign with, so that every live worker reads the cursor."""
        return await master_secrets.writing_id(tx, self._masters)

    def write(
        self,
        organization_id: OrganizationId,
        question: CostQuery,
        place: PageCursor,
        *,
        master_id: str,
    ) -> str:
        """Return the signed cursor of a position."""
        content = _CONTENT.pack(place.bucket, place.end)
        tag = _tag(self._keys[master_id], organization_id, question, content)
        return base64.urlsafe_b64encode(content + tag).decode()

    def read(self, organization_id: OrganizationId, question: CostQuery, text: str) -> PageCursor:
        """Return the position of a cursor; raise `InvalidCursor` if it is not for this query."""
        decoded = _decoded(text)
        content, tag = decoded[: _CONTENT.size], decoded[_CONTENT.size :]
        expected = (_tag(key, organization_id, question, content) for key in self._keys.values())
        if not any(hmac.compare_digest(tag, one) for one in expected):
            raise InvalidCursor
        bucket, end = _CONTENT.unpack(content)
        return PageCursor(bucket=bucket, end=end)


def _tag(key: bytes, organization_id: OrganizationId, question: CostQuery, content: bytes) -> bytes:
    return hmac.digest(key, content + _canonical(organization_id, question), "sha256")


def _decoded(text: str) -> bytes:
    """Decode a cursor; raise `InvalidCursor` for a wrong length or a character outside base64."""
    # The decoder takes the two characters of plain base64 too.
    if len(text) != _TEXT_LENGTH or not text.isascii() or "+" in text or "/" in text:
        raise InvalidCursor
    try:
        decoded = base64.b64decode(text, altchars=b"-_", validate=True)
    except binascii.Error:
        raise InvalidCursor from None
    if len(decoded) != _CONTENT.size + _TAG_BYTES:
        raise InvalidCursor
    return decoded


def _canonical(organization_id: OrganizationId, question: CostQuery) -> bytes:
    """Return a text that is the same for equal queries, and different for all others."""
    fields = (
        str(organization_id),
        question.subject.value,
        str(question.start),
        str(question.width.value),
        _listed(question.only.project_ids),
        _listed(question.only.api_key_ids),
        _listed(question.grouping),
    )
    return "\n".join(fields).encode()


def _listed(items: Iterable[object] | None) -> str:
    return "all" if items is None else ",".join(sorted(map(str, items)))
