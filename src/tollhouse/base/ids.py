"""One type for each identifier, and functions that create and parse them."""

import os
import re
import time
from datetime import UTC, date, datetime, timedelta
from typing import Final, NewType
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
SessionId = NewType("SessionId", UUID)
AlertSubscriptionId = NewType("AlertSubscriptionId", UUID)
AlertDeliveryId = NewType("AlertDeliveryId", UUID)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINTED_MILLISECONDS_MAX = 253_402_300_799_999  # the end of year 9999
_RANDOM_BITS_MASK = (1 << 62) - 1
_TIME_ORDERED_VERSION = 7
_UUID_HEX_LENGTH = 36
_SET_BACK_NANOSECONDS_MIN = 50_000_000
_POLICY_ID = re.compile(r"pol_([0-9a-f]{32})")


class IdClock:
    """The time that new IDs contain: what was last set, and what the process measured since.

    It starts with the machine's time. A process with a database sets it to the database's, so that
    the IDs of all workers have one order and fall into the days of the database.
    """

    def __init__(self) -> None:
        self._started_nanoseconds = time.time_ns() - time.monotonic_ns()

    def set(self, now: datetime) -> None:
        """Continue from this instant, unless it is less than 50 ms before the present one.

        The caller has read it a moment ago, longer ago on a busy machine. IDs would lose their
        order if the clock went back by that time.
        """
        since_epoch = (now - _EPOCH) // timedelta(microseconds=1) * 1_000
        started_nanoseconds = since_epoch - time.monotonic_ns()
        back_nanoseconds = self._started_nanoseconds - started_nanoseconds
        if not 0 < back_nanoseconds < _SET_BACK_NANOSECONDS_MIN:
            self._started_nanoseconds = started_nanoseconds

    def nanoseconds(self) -> int:
        """Return the Unix time."""
        return self._started_nanoseconds + time.monotonic_ns()


ID_CLOCK: Final = IdClock()
"""One per process, as the machine's clock is: IDs are made in many places, and without a wait."""


def time_ordered_uuid() -> UUID:
    """Return a new UUIDv7 (RFC 9562): 60 bits of Unix time, then 62 random bits.

    The order of IDs is the order of creation, so that a list of rows needs no second index. The
    12 bits after the milliseconds hold their fraction, which orders the rows of one request.
    """
    milliseconds, nanoseconds = divmod(ID_CLOCK.nanoseconds(), 1_000_000)
    part = (nanoseconds << 12) // 1_000_000
    random_bits = int.from_bytes(os.urandom(8)) & _RANDOM_BITS_MASK
    return UUID(int=milliseconds << 80 | 0x7 << 76 | part << 64 | 0b10 << 62 | random_bits)


def minted_at(identifier: UUID) -> datetime | None:
    """Return the instant at which a UUIDv7 was created; None for a UUID of another version."""
    milliseconds = identifier.int >> 80
    if identifier.version != _TIME_ORDERED_VERSION or milliseconds > _MINTED_MILLISECONDS_MAX:
        return None
    return _EPOCH + timedelta(milliseconds=milliseconds)


def first_uuid_at(at: datetime) -> UUID:
    """Return the UUID that sorts before every UUIDv7 created at this millisecond or later."""
    milliseconds = (at - _EPOCH) // timedelta(milliseconds=1)
    return UUID(int=min(max(milliseconds, 0), _MINTED_MILLISECONDS_MAX) << 80)


def day_of(identifier: UUID) -> date | None:
    """Return the UTC day on which a UUIDv7 was minted, or None for an ID of another kind."""
    at = minted_at(identifier)
    return None if at is None else at.date()


def parse_uuid(text: str) -> UUID | None:
    """Return the UUID of a canonical text, or None. Unlike `UUID()`, accepts no other form."""
    if len(text) != _UUID_HEX_LENGTH:
        return None
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text.lower() else None


def policy_id_text(policy_id: PolicyId) -> str:
    """Return a policy's ID as callers see it."""
    return f"pol_{policy_id.hex}"


def policy_version_id_text(policy_id: PolicyId, version: int) -> str:
    """Return the ID of a published version, made from its policy's ID and its number."""
    return f"{policy_id_text(policy_id)}_v{version}"


def parse_policy_id(text: str) -> PolicyId | None:
    """Return the policy ID of a text by `policy_id_text`, or None."""
    match = _POLICY_ID.fullmatch(text)
    return None if match is None else PolicyId(UUID(match[1]))
