"""The cursor of a report: where it goes on and where it ends, signed together with the question.

The question itself does not stand in the cursor, so every cursor is short. As it is signed
with it, a cursor fits the organization and the question that it was made for, and no other.
"""

import base64
import binascii
import hmac
import struct
from collections.abc import Iterable
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.reports.errors import InvalidCursor
from tollhouse.reports.types import Place, Question
from tollhouse.storage import master_secrets
from tollhouse.storage.database import Transaction
from tollhouse.storage.master_secrets import MasterSecrets

_LABEL: Final = b"tollhouse report cursor v1"
_CONTENT: Final = struct.Struct(">QQ")
_TAG_BYTES: Final = 32
_TEXT_LENGTH: Final = 64


class Cursors:
    """Writes and reads cursors with keys of their own, one derived from each master secret."""

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
        question: Question,
        place: Place,
        *,
        master_id: str,
    ) -> str:
        """The cursor that leads to a place."""
        content = _CONTENT.pack(place.bucket, place.end)
        tag = _tag(self._keys[master_id], organization_id, question, content)
        return base64.urlsafe_b64encode(content + tag).decode()

    def read(self, organization_id: OrganizationId, question: Question, text: str) -> Place:
        """Where a cursor leads, if it was written for this question of this organization."""
        decoded = _decoded(text)
        content, tag = decoded[: _CONTENT.size], decoded[_CONTENT.size :]
        expected = (_tag(key, organization_id, question, content) for key in self._keys.values())
        if not any(hmac.compare_digest(tag, one) for one in expected):
            raise InvalidCursor
        bucket, end = _CONTENT.unpack(content)
        return Place(bucket=bucket, end=end)


def _tag(key: bytes, organization_id: OrganizationId, question: Question, content: bytes) -> bytes:
    return hmac.digest(key, content + _canonical(organization_id, question), "sha256")


def _decoded(text: str) -> bytes:
    """One spelling only: what base64 would forgive is refused."""
    if len(text) != _TEXT_LENGTH or not text.isascii():
        raise InvalidCursor
    try:
        decoded = base64.b64decode(text, altchars=b"-_", validate=True)
    except binascii.Error:
        raise InvalidCursor from None
    if len(decoded) != _CONTENT.size + _TAG_BYTES:
        raise InvalidCursor
    return decoded


def _canonical(organization_id: OrganizationId, question: Question) -> bytes:
    """One text for all ways to ask the same; no field can run into the next."""
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
