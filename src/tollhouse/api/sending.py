"""Sending whole and streamed answers, with the headers that every answer has."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Final
from urllib.parse import quote

from tollhouse.api.body import ABORT, ADMITTED, HAS_LEFT
from tollhouse.api.call import FileAnswer
from tollhouse.api.errors import Reply
from tollhouse.api.exchange import Exchange
from tollhouse.api.stream_sender import STREAM_HEADERS, StreamReply, StreamSender
from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.contract.errors import ErrorShape
from tollhouse.evaluation import COUNTED_BYTES_MIN, AnswerBuffers

_NO_CONTENT: Final = 204
_SAFE: Final = "/:@+,= "
"""What the ID of a model may have in a header besides letters, digits and `_.-~`."""
_NO_STORE: Final = (b"cache-control", b"no-store")
_JSON_HEADERS: Final = (_NO_STORE, (b"content-type", b"application/json"))


class ResponseSender:
    """One per worker. Answers that wait for slow readers count against `buffers`."""

    def __init__(
        self, buffers: AnswerBuffers, clock: Clock, tasks: Tasks, *, keep_alive_seconds: float
    ) -> None:
        self._buffers = buffers
        self._clock = clock
        self._tasks = tasks
        self._keep_alive_seconds = keep_alive_seconds

    async def send(self, reply: Reply, exchange: Exchange) -> bool:
        """Send a whole answer. Return whether the caller was connected when it was written.

        A large answer counts as buffered until the caller has read it.

        Raises `OutputBufferExceeded` before anything is sent if the organization has no room
        for the answer.
        """
        caller = exchange.trace.caller
        if caller is None or len(reply.body) < COUNTED_BYTES_MIN:
            return await send_reply(reply, exchange)
        output = self._buffers.output_for(caller.organization_id)
        piece = output.begin_write(len(reply.body), _abort_of(exchange))
        try:
            return await send_reply(reply, exchange)
        finally:
            output.end_write(piece)

    async def send_file(self, answer: FileAnswer, exchange: Exchange) -> bool:
        """Send a file piece by piece. Return whether the caller stayed until its end.

        Each piece counts as buffered until the caller has read most of it. Releases the permit of
        the request.
        """
        assert exchange.trace.caller is not None, "only a handler answers with a file"
        output = self._buffers.output_for(exchange.trace.caller.organization_id)
        headers = _headers(answer, exchange)
        try:
            async with aclosing(answer.rest):
                await exchange.send(
                    {"type": "http.response.start", "status": 200, "headers": headers}
                )
                piece: bytes | None = answer.first
                while piece is not None and not has_left(exchange):
                    counted = output.begin_write(len(piece), _abort_of(exchange))
                    try:
                        await exchange.send(
                            {"type": "http.response.body", "body": piece, "more_body": True}
                        )
                    finally:
                        output.end_write(counted)
                    piece = await anext(answer.rest, None)
            await exchange.send({"type": "http.response.body", "body": b""})
        finally:
            if exchange.admin_permit is not None:
                exchange.admin_permit.release()
        return not has_left(exchange)

    async def send_stream(self, reply: StreamReply, exchange: Exchange) -> bool:
        """Send a streamed answer. Return whether the caller stayed until its end."""
        try:
            await exchange.send(
                {
                    "type": "http.response.start",
                    "status": reply.status,
                    "headers": _headers(reply, exchange),
                }
            )
        except BaseException:
            reply.answer.abandon()
            raise
        sender = StreamSender(
            reply.answer,
            receive=exchange.receive,
            send=exchange.send,
            abort=_abort_of(exchange),
            clock=self._clock,
            keep_alive_seconds=self._keep_alive_seconds,
        )
        await sender.run(self._tasks)
        return sender.has_reader


async def send_reply(reply: Reply, exchange: Exchange) -> bool:
    """Send a whole answer, and discard the rest of the body so that the caller reads the answer.

    Return whether the caller was connected when the answer was written.
    """
    body, send = exchange.body, exchange.send
    has_content = exchange.scope["method"] != "HEAD" and reply.status != _NO_CONTENT
    content = reply.body if has_content else b""
    # Read before the first await, since the header `connection: close` depends on it too.
    is_unread = not body.is_finished
    await send(
        {
            "type": "http.response.start",
            "status": reply.status,
            "headers": _headers(reply, exchange),
        }
    )
    if not is_unread or body.has_timed_out or exchange.head.waits_for_continue:
        await send({"type": "http.response.body", "body": content})
        return not has_left(exchange)
    await send({"type": "http.response.body", "body": content, "more_body": True})
    # Asked before the rest is read: a caller that has its answer may close the connection.
    is_gone = has_left(exchange)
    await body.discard()
    await send({"type": "http.response.body", "body": b""})
    return not is_gone


def _headers(
    reply: Reply | StreamReply | FileAnswer, exchange: Exchange
) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer. The connection closes if the body was not read."""
    request_id = str(exchange.trace.request_id).encode()
    headers = [(name.encode(), value.encode()) for name, value in reply.headers]
    headers.append((b"x-request-id", request_id))
    if exchange.trace.backend is not None and exchange.trace.model is not None:
        headers.append((b"x-tollhouse-model", quote(exchange.trace.model, safe=_SAFE).encode()))
    if isinstance(reply, StreamReply):
        headers += STREAM_HEADERS
    elif isinstance(reply, FileAnswer):
        disposition = f'attachment; filename="{reply.name}"'
        headers.append((b"content-type", reply.media_type.encode()))
        headers += (_NO_STORE, (b"content-disposition", disposition.encode()))
    elif reply.body:
        headers += STREAM_HEADERS if reply.is_events else _JSON_HEADERS
        headers.append((b"content-length", b"%d" % len(reply.body)))
    else:
        headers.append(_NO_STORE)
    if exchange.shape is ErrorShape.MESSAGES:
        headers.append((b"request-id", request_id))
    if not exchange.body.is_finished:
        headers.append((b"connection", b"close"))
    return headers


def end_pending_of(exchange: Exchange) -> Callable[[], None]:
    """Return the function by which the server learns that the request waits for it no more."""
    return exchange.scope.get("extensions", {}).get(ADMITTED, _count_nothing)


def has_left(exchange: Exchange) -> bool:
    """Return whether the caller has disconnected, as far as the server knows."""
    return exchange.scope.get("extensions", {}).get(HAS_LEFT, _is_unknown)()


def _abort_of(exchange: Exchange) -> Callable[[], None]:
    return exchange.scope.get("extensions", {}).get(ABORT, _leave_open)


def _leave_open() -> None:
    """Replace `ABORT` on servers that close a connection when its answer is incomplete."""


def _is_unknown() -> bool:
    """Replace `HAS_LEFT` on servers that do not have it: the caller counts as connected."""
    return False


def _count_nothing() -> None:
    """Replace `ADMITTED` on servers that do not count pending requests."""
