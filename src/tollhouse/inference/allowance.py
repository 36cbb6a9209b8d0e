"""How many bytes of answers a worker buffers at once: of a request, an organization, all of them.

Answers are buffered until a policy's verdict, or until their callers have read them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.base.shares import Shares
from tollhouse.inference.errors import (
    AnswerTooLongToHold,
    NoRoomToHold,
    OutputBufferExceeded,
    TooMuchHeldBack,
)

COUNTED_BYTES_MIN: Final = 4_096
"""Smaller pieces of output are bounded by the connection's own buffer and are not counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldingBounds:
    """In bytes."""

    request_max: int
    worker_max: int


@dataclass(eq=False, slots=True)
class _UnreadPiece:
    """A piece of output that is being sent. `cut` ends the connection of its reader."""

    organization_id: OrganizationId
    size_bytes: int
    cut: Callable[[], None]


class HeldBytes:
    """One per worker."""

    def __init__(self, bounds: HoldingBounds) -> None:
        self._shares = Shares(bounds.worker_max)
        self._unread: dict[_UnreadPiece, None] = {}
        self.request_max = bounds.request_max

    @property
    def organization_max(self) -> int:
        """What one organization may hold."""
        return self._shares.organization_max

    @property
    def held(self) -> int:
        """Of all organizations together."""
        return self._shares.used

    def of(self, organization_id: OrganizationId) -> "Allowance":
        """One answer's own; whoever gets it gives it back."""
        return Allowance(self, organization_id, self.request_max)

    def output_of(
        self, organization_id: OrganizationId, *, is_withheld: bool = False
    ) -> "OutputBuffer":
        """The unread output of one answer; whoever gets it releases it.

        An answer that was withheld until its verdict is counted as a whole until its end.
        """
        return OutputBuffer(self, organization_id, is_counted=not is_withheld)

    def exceeds_share(self, organization_id: OrganizationId, size_bytes: int) -> bool:
        """Whether it would be too much also if nobody else used anything."""
        return self._shares.exceeds_share(organization_id, size_bytes)

    def take(self, organization_id: OrganizationId, size_bytes: int) -> bool:
        """Whether there was room for it; readers that use more make way where the worker is full.

        So an organization inside its share is never refused because others do not read.
        """
        if self._shares.take(organization_id, size_bytes):
            return True
        if self.exceeds_share(organization_id, size_bytes):
            return False
        wanted = self._shares.used_by(organization_id) + size_bytes
        for piece in sorted(self._unread, key=self._use_of_organization, reverse=True):
            if self._use_of_organization(piece) <= wanted:
                return False
            self.no_longer_unread(piece)
            piece.cut()
            if self._shares.take(organization_id, size_bytes):
                return True
        return False

    def give_back(self, organization_id: OrganizationId, size_bytes: int) -> None:
        """Hold so much less."""
        self._shares.give_back(organization_id, size_bytes)

    def unread(
        self, organization_id: OrganizationId, size_bytes: int, cut: Callable[[], None]
    ) -> _UnreadPiece | None:
        """Count a piece until it is read; None if there is no room for it."""
        if not self.take(organization_id, size_bytes):
            return None
        piece = _UnreadPiece(organization_id, size_bytes, cut)
        self._unread[piece] = None
        return piece

    def no_longer_unread(self, piece: _UnreadPiece) -> None:
        """Count a piece no longer; any number of times."""
        if piece in self._unread:
            del self._unread[piece]
            self._shares.give_back(piece.organization_id, piece.size_bytes)

    def _use_of_organization(self, piece: _UnreadPiece) -> int:
        return self._shares.used_by(piece.organization_id)


class Allowance:
    """What one answer holds."""

    def __init__(self, buffers: HeldBytes, organization_id: OrganizationId, bytes_max: int) -> None:
        self._buffers = buffers
        self._organization_id = organization_id
        self._bytes_max = bytes_max
        self._bytes = 0
        self._counted = 0

    def take(self, size_bytes: int, *, copies: int = 1) -> None:
        """Hold more, or fail: what does not fit is never let through instead.

        `copies` says how many times its size the answer takes in memory.
        """
        if self._bytes + size_bytes > self._bytes_max:
            raise AnswerTooLongToHold
        counted = size_bytes * copies
        if self._buffers.exceeds_share(self._organization_id, counted):
            raise TooMuchHeldBack
        if not self._buffers.take(self._organization_id, counted):
            raise NoRoomToHold
        self._bytes += size_bytes
        self._counted += counted

    def give_back(self) -> None:
        """Hold nothing any more; any number of times."""
        counted, self._bytes, self._counted = self._counted, 0, 0
        self._buffers.give_back(self._organization_id, counted)


class OutputBuffer:
    """What one answer keeps in memory because its caller has not read it yet."""

    def __init__(
        self, buffers: HeldBytes, organization_id: OrganizationId, *, is_counted: bool
    ) -> None:
        self._buffers = buffers
        self._organization_id = organization_id
        self._is_counted = is_counted
        self._retained_bytes = 0

    def begin_write(self, size_bytes: int, cut: Callable[[], None]) -> _UnreadPiece | None:
        """Count a piece that is being sent; raises OutputBufferExceeded.

        Returns it for `end_write`. `cut` is called if it must make way for others.
        """
        if size_bytes < COUNTED_BYTES_MIN or not self._is_counted:
            return None
        piece = self._buffers.unread(self._organization_id, size_bytes, cut)
        if piece is None:
            raise OutputBufferExceeded
        return piece

    def end_write(self, piece: _UnreadPiece | None) -> None:
        """Count the piece no longer: its caller has read it, or has left."""
        if piece is not None:
            self._buffers.no_longer_unread(piece)

    def retain(self, total_bytes: int) -> None:
        """Count what the answer keeps until its end; raises OutputBufferExceeded."""
        added = total_bytes - self._retained_bytes
        if added >= COUNTED_BYTES_MIN and self._is_counted:
            if not self._buffers.take(self._organization_id, added):
                raise OutputBufferExceeded
            self._retained_bytes = total_bytes

    def release(self) -> None:
        """Count nothing any more; any number of times."""
        retained, self._retained_bytes = self._retained_bytes, 0
        self._buffers.give_back(self._organization_id, retained)
