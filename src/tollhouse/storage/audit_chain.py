"""Recomputes the hash chain of audit rows, without the database's functions that write it.

A hash is the SHA-256 over fields, each with its length before it as four bytes, or -1 for NULL. An
organization's chain begins with the hash of its ID and of how many audit rows are older.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from tollhouse.base.ids import AuditId, OrganizationId

_FORM: Final = b"tollhouse audit 1"
_NULL: Final = struct.pack(">i", -1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
HASHED_COLUMNS: Final = (
    *("organization_id", "id", "occurred_at", "actor_type", "actor_id", "action"),
    *("resource_type", "resource_id", "changes", "digest_before", "digest_after", "request_id"),
    "actor_name",
)
"""All columns of `audit_log`, in the order in which they are hashed."""


class ChainFault(StrEnum):
    """What is wrong with a row of a chain."""

    CHANGED = "changed"
    MISSING = "missing"
    INSERTED = "inserted"
    UNLINKED = "unlinked"
    """It does not follow the row before: rows were exchanged, or that one was rewritten."""
    TRUNCATED = "truncated"
    REWRITTEN = "rewritten"
    """The chain is sound in itself, and does not have a head that was stored elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainHead:
    """The last row of an organization's chain."""

    organization_id: OrganizationId
    number: int
    hash: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstFault:
    """The first wrong row of a chain. `audit_id` is None if the row is not there."""

    organization_id: OrganizationId
    fault: ChainFault
    number: int | None
    audit_id: AuditId | None = None


class ChainVerifier:
    """Recomputes one organization's chain from its rows, which are added in their order.

    Without `head` the organization has no chain yet. `stored` was kept outside of the database.
    """

    def __init__(
        self,
        organization_id: OrganizationId,
        *,
        unchained_rows: int,
        head: ChainHead | None,
        stored: ChainHead | None,
    ) -> None:
        self._organization_id = organization_id
        self._head = head
        self._stored = stored
        self._number = 0
        self._hash = first_hash(organization_id, unchained_rows)
        self.fault: FirstFault | None = None

    @property
    def recomputed(self) -> ChainHead:
        """The last sound row."""
        return ChainHead(
            organization_id=self._organization_id, number=self._number, hash=self._hash
        )

    def add(self, row: Mapping[str, Any]) -> None:
        """Check the next row: its link in `audit_chain`, and the columns of `audit_log`."""
        number, audit_id = self._number + 1, row["audit_id"]
        if row["number"] != number:
            self._fail(ChainFault.MISSING, number)
        elif self._head is None or number > self._head.number:
            self._fail(ChainFault.INSERTED, number, audit_id)
        elif row["id"] is None:
            self._fail(ChainFault.MISSING, number, audit_id)
        elif row["previous_hash"] != self._hash:
            self._fail(ChainFault.UNLINKED, number, audit_id)
        elif row["hash"] != (found := row_hash(self._hash, number, row)):
            self._fail(ChainFault.CHANGED, number, audit_id)
        else:
            self._number, self._hash = number, found
            if self._stored is not None and self._stored.number == number:
                self._compare(self._stored, ChainFault.REWRITTEN, audit_id)

    def finish(self) -> None:
        """Compare the end of the chain with its head, and with the stored one."""
        heads = (self._head, self._stored)
        if self._number < max((head.number for head in heads if head is not None), default=0):
            self._fail(ChainFault.TRUNCATED, self._number + 1)
        elif self._head is not None:
            self._compare(self._head, ChainFault.UNLINKED, None)

    def count(self, *, expected: int, found: int, newest: AuditId | None) -> None:
        """Compare the number of rows outside of the chain; `newest` is the last of them."""
        if found > expected:
            self._fail(ChainFault.INSERTED, None, newest)
        elif found < expected:
            self._fail(ChainFault.MISSING, None)

    def _compare(self, head: ChainHead, fault: ChainFault, audit_id: AuditId | None) -> None:
        if head.hash != self._hash:
            self._fail(fault, self._number, audit_id)

    def _fail(self, fault: ChainFault, number: int | None, audit_id: AuditId | None = None) -> None:
        self.fault = self.fault or FirstFault(
            organization_id=self._organization_id, fault=fault, number=number, audit_id=audit_id
        )


def first_hash(organization_id: OrganizationId, unchained_rows: int) -> bytes:
    """Return what stands for the hash of the row before the first."""
    return _hash(organization_id.bytes, _number(unchained_rows))


def row_hash(previous: bytes, number: int, row: Mapping[str, Any]) -> bytes:
    """Return the hash of an audit row at its number; `changes` is the text of the column."""
    return _hash(previous, _number(number), *(_field(row[name]) for name in HASHED_COLUMNS))


def _hash(*fields: bytes | None) -> bytes:
    hashed = hashlib.sha256()
    for field in (_FORM, *fields):
        hashed.update(_NULL if field is None else struct.pack(">i", len(field)) + field)
    return hashed.digest()


def _field(value: UUID | datetime | str | bytes | None) -> bytes | None:
    match value:
        case UUID():
            return value.bytes
        case datetime():
            return _number((value - _EPOCH) // timedelta(microseconds=1))
        case str():
            return value.encode()
        case bytes() | None:
            return value


def _number(value: int) -> bytes:
    return struct.pack(">q", value)
