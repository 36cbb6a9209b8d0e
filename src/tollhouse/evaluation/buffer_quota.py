"""Bounds on the bytes of answers that a worker buffers: per request, organization and worker.

An answer is buffered until its verdict, or until its caller has read it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.base.quotas import WorkerQuota
from tollhouse.evaluation.errors import (
    AnswerBuffersFull,
    AnswerTooLongToBuffer,
    OrganizationBufferExceeded,
    OutputBufferExceeded,
)

COUNTED_BYTES_MIN: Final = 4_096
"""Smaller pieces of output are not counted: the buffer of the connection bounds them."""


@dataclass(eq=False, slots=True)
class _UnreadPiece:
    """A piece of output that its caller has not read yet. `cut` closes the caller's connection."""

    organization_id: OrganizationId
    size_bytes: int
    cut: Callable[[], None]


class AnswerBuffers:
    """Counts the buffered bytes of all answers of a worker."""

    def __init__(self, *, request_max: int, worker_max: int) -> None:
        self._shares = WorkerQuota(worker_max)
        self._unread: dict[_UnreadPiece, None] = {}
        self.request_max = request_max

    @property
    def organization_max(self) -> int:
        """The most bytes that one organization may buffer."""
        return self._shares.organization_max

    @property
    def used_bytes(self) -> int:
        """The bytes that all organizations buffer together."""
        return self._shares.used

    def quota_for(self, organization_id: OrganizationId) -> "BufferQuota":
        """Return the quota of one answer that waits for its verdict. The caller releases it."""
        return BufferQuota(self, organization_id, self.request_max)

    def output_for(
        self, organization_id: OrganizationId, *, is_withheld: bool = False
    ) -> "OutputBuffer":
        """Return the counter of one answer's unread output. The caller releases it.

        An answer that was withheld until its verdict is already counted by its `BufferQuota`.
        """
        return OutputBuffer(self, organization_id, is_counted=not is_withheld)

    def exceeds_share(self, organization_id: OrganizationId, size_bytes: int) -> bool:
        """Whether it would exceed the organization's share even in an idle worker."""
        return self._shares.exceeds_share(organization_id, size_bytes)

    def acquire(self, organization_id: OrganizationId, size_bytes: int) -> bool:
        """Count so many bytes. Returns False, and counts nothing, if they do not fit.

        If the worker's buffer is full, this cuts slow readers of organizations that use more, so
        that an organization inside its share is not refused because others do not read.
        """
        if self._shares.acquire(organization_id, size_bytes):
            return True
        if self.exceeds_share(organization_id, size_bytes):
            return False
        wanted = self._shares.used_by(organization_id) + size_bytes
        for piece in sorted(self._unread, key=self._use_of_organization, reverse=True):
            if self._use_of_organization(piece) <= wanted:
                return False
            self.end_unread(piece)
            piece.cut()
            if self._shares.acquire(organization_id, size_bytes):
                return True
        return False

    def release(self, organization_id: OrganizationId, size_bytes: int) -> None:
        """Count so many bytes less."""
        self._shares.release(organization_id, size_bytes)

    def begin_unread(
        self, organization_id: OrganizationId, size_bytes: int, cut: Callable[[], None]
    ) -> _UnreadPiece | None:
        """Count a piece until `end_unread`. Returns None if it does not fit."""
        if not self.acquire(organization_id, size_bytes):
            return None
        piece = _UnreadPiece(organization_id, size_bytes, cut)
        self._unread[piece] = None
        return piece

    def end_unread(self, piece: _UnreadPiece) -> None:
        """Stop counting a piece. Does nothing the second time."""
        if piece in self._unread:
            del self._unread[piece]
            self._shares.release(piece.organization_id, piece.size_bytes)

    def _use_of_organization(self, piece: _UnreadPiece) -> int:
        return self._shares.used_by(piece.organization_id)


class BufferQuota:
    """Counts the bytes of one answer that is buffered until its verdict."""

    def __init__(
        self, buffers: AnswerBuffers, organization_id: OrganizationId, bytes_max: int
    ) -> None:
        self._buffers = buffers
        self._organization_id = organization_id
        self._bytes_max = bytes_max
        self._bytes = 0
        self._counted = 0

    def acquire(self, size_bytes: int, *, copies: int = 1) -> None:
        """Count more bytes of the answer, each `copies` times, as often as it is in memory.

        Raises `AnswerTooLongToBuffer`, `OrganizationBufferExceeded` or `AnswerBuffersFull`.
        """
        if self._bytes + size_bytes > self._bytes_max:
            raise AnswerTooLongToBuffer
        counted = size_bytes * copies
        if self._buffers.exceeds_share(self._organization_id, counted):
            raise OrganizationBufferExceeded
        if not self._buffers.acquire(self._organization_id, counted):
            raise AnswerBuffersFull
        self._bytes += size_bytes
        self._counted += counted

    def release(self) -> None:
        """Stop counting the answer. Does nothing the second time."""
        counted, self._bytes, self._counted = self._counted, 0, 0
        self._buffers.release(self._organization_id, counted)


class OutputBuffer:
    """Counts the bytes of one answer that its caller has not read yet."""

    def __init__(
        self, buffers: AnswerBuffers, organization_id: OrganizationId, *, is_counted: bool
    ) -> None:
        self._buffers = buffers
        self._organization_id = organization_id
        self._is_counted = is_counted
        self._retained_bytes = 0

    def begin_write(self, size_bytes: int, cut: Callable[[], None]) -> _UnreadPiece | None:
        """Count a piece that is being sent, and return it for `end_write`.

        `cut` is called if others need the buffer. Raises `OutputBufferExceeded`.
        """
        if size_bytes < COUNTED_BYTES_MIN or not self._is_counted:
            return None
        piece = self._buffers.begin_unread(self._organization_id, size_bytes, cut)
        if piece is None:
            raise OutputBufferExceeded
        return piece

    def end_write(self, piece: _UnreadPiece | None) -> None:
        """Stop counting a piece that the caller has read, or will never read."""
        if piece is not None:
            self._buffers.end_unread(piece)

    def retain(self, total_bytes: int) -> None:
        """Count what the answer keeps until its end. Raises `OutputBufferExceeded`."""
        added = total_bytes - self._retained_bytes
        if added >= COUNTED_BYTES_MIN and self._is_counted:
            if not self._buffers.acquire(self._organization_id, added):
                raise OutputBufferExceeded
            self._retained_bytes = total_bytes

    def release(self) -> None:
        """Stop counting what the answer keeps. Does nothing the second time."""
        retained, self._retained_bytes = self._retained_bytes, 0
        self._buffers.release(self._organization_id, retained)
