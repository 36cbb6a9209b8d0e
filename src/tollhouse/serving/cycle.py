"""Sending an answer: uvicorn's exchange, with heads made and checked as a whole.

The parent looks at every header by itself, which takes longer than all that it then writes.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
COPIED_BYTES_MAX: Final = 16_384
_WITHOUT_BODY: Final = frozenset({204, 304})

Header = tuple[bytes, bytes]


class MisusedServer(RuntimeError):
    """The application has sent what is no answer."""


class Cycle(RequestResponseCycle):
    """One request and its answer. Names of headers come in lower case, as ASGI has it."""

    on_early_answer: Callable[[], None] | None = None
    """Called when all of an answer is written and the application still reads the request."""

    async def send(self, message: Any) -> None:  # noqa: ANN401 - one of ASGI's
        """Write the head or a piece of the body, then wait until the peer has read most of it.

        Returns at once where the peer has left. A peer that does not read is cut by the
        connection's write deadline, which ends the wait.
        """
        if self.disconnected:
            return
        if self.response_complete:
            reason = "the answer is complete"
            raise MisusedServer(reason)
        if message["type"] == "http.response.body" and self.response_started:
            self._send_body(message.get("body", b""), is_last=not message.get("more_body", False))
        elif message["type"] == "http.response.start" and not self.response_started:
            self._send_head(message["status"], message["headers"])
        else:
            reason = f"{message['type']} is out of turn"
            raise MisusedServer(reason)
        if self.flow.write_paused:
            await self.flow.drain()

    def _send_head(self, status: int, headers: Sequence[Header]) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        lines = [*self.default_headers, *headers]
        fields = dict(lines)
        assert b"transfer-encoding" not in fields, "the server frames what has no length"
        if fields.get(b"connection") == b"close":
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append((b"connection", b"close"))
        length = fields.get(b"content-length")
        has_body = self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY
        self.expected_content_length = int(length) if length is not None and has_body else 0
        self.chunked_encoding = has_body and length is None
        if self.chunked_encoding:
            lines.append((b"transfer-encoding", b"chunked"))
        self.transport.write(STATUS_LINE[status] + _head(lines))

    def _send_body(self, body: bytes, *, is_last: bool) -> None:
        if self.chunked_encoding:
            self._send_chunk(body, end=b"0\r\n\r\n" if is_last else b"")
        elif self.scope["method"] != "HEAD":
            left_bytes = self.expected_content_length - len(body)
            if left_bytes < 0 or (is_last and left_bytes > 0):
                reason = "the body has another length than its header says"
                raise MisusedServer(reason)
            self.expected_content_length = left_bytes
            self.transport.write(body)
        if is_last:
            self._complete()
        elif self._is_early_answer() and self.on_early_answer is not None:
            self.on_early_answer()

    def _is_early_answer(self) -> bool:
        is_written = not self.chunked_encoding and self.expected_content_length == 0
        return is_written and self.more_body

    def _send_chunk(self, body: bytes, *, end: bytes) -> None:
        """Frame a piece. A large one is not copied: unread, it would be in memory twice."""
        if len(body) <= COPIED_BYTES_MAX:
            self.transport.write(b"%x\r\n%b\r\n%b" % (len(body), body, end) if body else end)
            return
        self.transport.write(b"%x\r\n" % len(body))
        self.transport.write(body)
        self.transport.write(b"\r\n" + end)

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _head(lines: Sequence[Header]) -> bytes:
    """Nothing in a name or value may begin another line."""
    text = b"".join([b"%b: %b\n" % line for line in lines])
    if text.count(b"\n") != len(lines) or _CONTROL.search(text) is not None:
        reason = "a header holds what no header may"
        raise MisusedServer(reason)
    return text.replace(b"\n", b"\r\n") + b"\r\n"
