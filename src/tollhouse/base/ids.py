"""One type per identifier, and how each is minted."""

import os
import re
import time
from datetime import UTC, datetime, timedelta
from typing import NewType
from uuid import UUID

OrganizationId = NewType("OrganizationId", UUID)
ProjectId = NewType("ProjectId", UUID)
ProjectKeyId = NewType("ProjectKeyId", UUID)
AdminKeyId = NewType("AdminKeyId", UUID)
PolicyId = NewType("PolicyId", UUID)
RequestId = NewType("RequestId", UUID)
AuditId = NewType("AuditId", UUID)
InstanceId = NewType("InstanceId", UUID)
ReservationId = NewType("ReservationId", UUID)
GrantId = NewType("GrantId", UUID)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINTED_MILLISECONDS_MAX = 253_402_300_799_999  # the end of year 9999
_RANDOM_BITS_MASK = (1 << 62) - 1
_TIME_ORDERED_VERSION = 7
_UUID_HEX_LENGTH = 36
_POLICY_ID = re.compile(r"pol_([0-9a-f]{32})")


def time_ordered_uuid() -> UUID:
    """Mint a UUIDv7 (RFC 9562): 60 bits of Unix time, then 62 random bits.

    IDs of rows are minted this way so that the order of IDs is the order of creation, and a
    list needs no second index. Milliseconds alone would leave it to chance which of two rows
    of one request comes first, so the 12 bits after them count its parts.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    part = (nanoseconds << 12) // 1_000_000
    random_bits = int.from_bytes(os.urandom(8)) & _RANDOM_BITS_MASK
    return UUID(int=milliseconds << 80 | 0x7 << 76 | part << 64 | 0b10 << 62 | random_bits)


def minted_at(identifier: UUID) -> datetime | None:
    """When a UUIDv7 was minted, to the millisecond; nothing for an ID of another kind."""
    milliseconds = identifier.int >> 80
    if identifier.version != _TIME_ORDERED_VERSION or milliseconds > _MINTED_MILLISECONDS_MAX:
        return None
    return _EPOCH + timedelta(milliseconds=milliseconds)


def parse_uuid(text: str) -> UUID | None:
    """Read the canonical form only: `UUID()` alone would also take braces, URNs and bare hex."""
    if len(text) != _UUID_HEX_LENGTH:
        return None
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text.lower() else None


def policy_id_text(policy_id: PolicyId) -> str:
    """The form in which callers see a policy's ID."""
    return f"pol_{policy_id.hex}"


def policy_version_id_text(policy_id: PolicyId, version: int) -> str:
    """A publication has no ID of its own: this one says which policy's it is."""
    return f"{policy_id_text(policy_id)}_v{version}"


def parse_policy_id(text: str) -> PolicyId | None:
    """Read the one form that `policy_id_text` writes."""
    match = _POLICY_ID.fullmatch(text)
    return None if match is None else PolicyId(UUID(match[1]))
