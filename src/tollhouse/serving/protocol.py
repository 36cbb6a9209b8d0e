"""uvicorn's HTTP/1.1 connection, with a bound on everything that a peer can make it wait for.

What the parent class leaves open, and this one closes:

- the bytes and the time of a request's head, also on a connection that never sends a byte;
- chunk extensions and trailers, which the parser would read without end; trailers would also
  be appended to the headers of a request that is already running;
- transfer codings other than `chunked`, which another server in front may read differently;
- an offer to upgrade, after which the parser would take the body for the next request;
- bytes that cannot be parsed while an answer is outstanding: the parent writes a second answer;
- a connection that is closed while the peer still sends, so that a reset destroys the answer;
- a peer that does not read: what is written for it would stay in memory until it leaves;
- a disconnect during pipelining, of which the running application would not hear.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tollhouse.api.body import ABORT
from tollhouse.api.edge_errors import HeadTimedOut, HeadTooLarge, MalformedRequest
from tollhouse.api.head import is_chunked
from tollhouse.base.errors import GatewayError
from tollhouse.serving import refusals
from tollhouse.serving.connections import Connections
from tollhouse.serving.cycle import Cycle
from tollhouse.serving.write_deadline import WriteDeadline

LINGER_SECONDS: Final = 2.0
"""How long a peer that still sends may take to notice that it was answered."""

IDLE_GRACE_SECONDS: Final = 2.0
"""How long a drained connection waits for a request that may already be on its way."""

PIPELINED_REQUESTS_MAX: Final = 16
"""Requests that wait on one connection for the answer to an earlier one."""

WRITE_BUFFER_BYTES: Final = 32_768
"""With more than that unsent, an application waits until its peer has read."""
HTTP_VERSIONS: Final = ("1.1", "1.0")

FRAMING_CONTENT_BYTES: Final = 2
"""Bytes of content that pay for one byte of framing: each chunk costs time, and five bytes of it or
more. Chunks of ten bytes pay for theirs; clients send thousands of bytes in one."""

FRAMING_BYTES_MAX: Final = 8192
"""Framing, extensions and trailers that a body may have beyond what its content pays for."""

PIECE_BYTES: Final = 8192
"""What is parsed of a head or of chunks before anything is counted."""

LAST_CHUNK: Final = b"0\r\n\r\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What a peer may take of a connection."""

    header_bytes_max: int
    header_seconds: float
    write_seconds: float


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection. While no answer is outstanding, exactly one timer is running."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        bounds: Bounds,
        open_connections: Connections,
        documentation_url: str | None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._application: Any = self.app  # pyright: ignore[reportUnknownMemberType] - untyped
        self._header_bytes_max = bounds.header_bytes_max
        self._header_seconds = bounds.header_seconds
        self._write_seconds = bounds.write_seconds
        self._open_connections = open_connections
        self._documentation_url = documentation_url
        self._deadline: asyncio.TimerHandle | None = None
        self._running: RequestResponseCycle | None = None
        self._is_in_head = True
        self._head_bytes = 0
        self._framing_bytes_left = 0
        self._is_chunked = False
        self._ignored_end: bytes | None = None
        self._is_deaf = False
        self._is_lingering = False
        self._is_draining = False

    # What the transport calls

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the clock at once: a connection that never sends must not stay."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._extensions = {ABORT: self._abort}
        self._write_deadline = WriteDeadline(transport, self.loop, seconds=self._write_seconds)
        self._open_connections.add(self)
        self._outlet = cast("asyncio.Transport", _Outlet(transport, self._close_without_reset))
        self._arm(self._header_seconds, self._head_timed_out)

    def data_received(self, data: bytes) -> None:
        """Feed the parser piece by piece, so that no head can outgrow its bound unseen."""
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        start = 0
        while start < len(data) and not self._is_deaf:
            end = start + self._piece_bytes()
            self._take(data[start:end])
            start = end
        if self._ignored_end is not None:
            self._look_for_end(data)
        if not self._is_in_head:
            self._open_connections.record_progress(self)
        if self._is_in_head and not self._is_deaf and not self._is_answering():
            self._time_what_comes_next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell every application that still runs; the parent tells only the newest."""
        self._disarm()
        self._write_deadline.stop()
        self._open_connections.remove(self)
        if self._running is not None and not self._running.response_complete:
            self._abandon(self._running)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The peer reads slower than the application writes."""
        super().pause_writing()
        self._write_deadline.start()

    def resume_writing(self) -> None:
        """The peer has read most of it; of a closing connection all must be read in time."""
        if not self.transport.is_closing():
            self._write_deadline.stop()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which no request came; what it has not read must not keep it."""
        if not self.transport.is_closing():
            self._close()

    def shutdown(self) -> None:
        """Answer what arrives within the grace, then close; requests under way are finished."""
        self._is_draining = True
        if self._is_answering():
            self.cycle.keep_alive = False
        else:
            self.loop.call_later(IDLE_GRACE_SECONDS, self._close_if_idle)

    # What the parser calls

    def on_headers_complete(self) -> None:
        """Hand the request over, or refuse it by raising, which the parser reports as an error."""
        if self.parser.should_upgrade():
            return
        version = self.parser.get_http_version()
        if not self._is_framing_sound(version):
            raise MalformedRequest
        if len(self.pipeline) >= PIPELINED_REQUESTS_MAX:
            raise MalformedRequest
        self._complete_scope(version)
        if self._deadline is not None:
            self._disarm()
        self._is_in_head = False
        self._head_bytes = 0
        self._framing_bytes_left = FRAMING_BYTES_MAX
        # Trailers go to a list that nobody reads; the request keeps the one that it was given.
        self.headers = []
        self._begin(self._new_cycle(keeps_alive=version == "1.1"))

    def on_body(self, body: bytes) -> None:
        """Keep the content until it is asked for; it pays for the framing around it."""
        self._framing_bytes_left += len(body) + len(body) // FRAMING_CONTENT_BYTES
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """The next byte begins a new head."""
        if self.parser.should_upgrade():
            return
        self._is_in_head = True
        self._framing_bytes_left = 0
        if not self.cycle.response_complete:
            self.cycle.more_body = False
            self.cycle.message_event.set()
            if self._running is self.cycle:
                self._open_connections.mark_busy(self)

    # What the running application causes

    def on_response_complete(self) -> None:
        """Go on to the next request, unless the connection is on its way out."""
        if self._is_lingering:
            self.server_state.total_requests += 1
            return
        if self.pipeline:
            self._running = self.pipeline[-1][0]
        super().on_response_complete()
        if self._is_answering() and not self._is_in_head and self._running is self.cycle:
            self._open_connections.mark_receiving(self)
        if not self._is_in_head and not self._is_answering():
            # The rest of an answered request is read and thrown away, but not forever.
            self._arm(LINGER_SECONDS, self.transport.abort)
        if not self._is_answering():
            self._open_connections.mark_idle(self)

    def _answered_early(self) -> None:
        """All of the answer is written: nobody needs the rest of the request.

        Chunks are thrown away unread, because they take long to parse.
        """
        self._open_connections.mark_idle(self)
        if self._is_chunked and not self.cycle.keep_alive:
            self._is_deaf = True
            self._ignored_end = b""

    # Reading

    def _piece_bytes(self) -> int:
        if self._is_in_head:
            return min(PIECE_BYTES, self._header_bytes_max - self._head_bytes)
        return PIECE_BYTES if self._is_chunked else self._header_bytes_max

    def _look_for_end(self, data: bytes) -> None:
        """End a request that is not parsed any more once it looks complete.

        If that is wrong or missed, its connection is closed sooner or later than need be.
        """
        assert self._ignored_end is not None, "the request is still parsed"
        self._ignored_end = (self._ignored_end + data[-len(LAST_CHUNK) :])[-len(LAST_CHUNK) :]
        if self._ignored_end == LAST_CHUNK:
            self.cycle.more_body = False
            self.cycle.message_event.set()

    def _take(self, piece: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(piece)
        else:
            self._framing_bytes_left -= len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as offer:
            self._decline_upgrade(piece[offer.args[0] :])
        except httptools.HttpParserError:
            self._refuse(MalformedRequest())
        else:
            if self._head_bytes >= self._header_bytes_max:
                self._refuse(HeadTooLarge(bytes_max=self._header_bytes_max))
            elif self._framing_bytes_left < 0:
                self._refuse(MalformedRequest())
            self._framing_bytes_left = min(self._framing_bytes_left, FRAMING_BYTES_MAX)

    def _is_framing_sound(self, version: str) -> bool:
        """Return whether every server finds the end of the body at the same byte.

        The parser accepts any list of codings that ends in `chunked`, and decodes chunks alone.
        Chunks in HTTP/1.0 are faulty framing (RFC 9112, section 6.1).
        """
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        self._is_chunked = bool(codings)
        if not codings:
            return version in HTTP_VERSIONS
        return version == "1.1" and is_chunked(codings)

    def _complete_scope(self, version: str) -> None:
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["http_version"] = version
        self.scope["path"] = unquote(path) if "%" in path else path
        self.scope["raw_path"] = url.path
        self.scope["query_string"] = url.query or b""
        self.scope["extensions"] = cast("Any", self._extensions)

    def _new_cycle(self, *, keeps_alive: bool) -> RequestResponseCycle:
        cycle = Cycle(
            scope=self.scope,
            transport=self._outlet,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=keeps_alive and not self._is_draining and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        cycle.on_early_answer = self._answered_early
        return cycle

    def _begin(self, cycle: RequestResponseCycle) -> None:
        """Start the application, or wait for the answer to the request before."""
        must_wait = self._is_answering()
        self.cycle = cycle
        if must_wait:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self._application))
        else:
            self._open_connections.mark_receiving(self)
            self._running = cycle
            self._start_asgi_task(cycle, self._application)

    def _decline_upgrade(self, rest: bytes) -> None:
        """Read the request again without the offer, which is how a server ignores it (RFC 9110).

        Java's client makes one on every plain connection. The parser itself cannot ignore it.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse(MalformedRequest())
            return
        version = self.parser.get_http_version().encode()
        head = [b"%b %b HTTP/%b\r\n" % (method, self.url, version)]
        head += [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._head_bytes = 0
        self._take(b"".join((*head, b"\r\n", rest)))

    def _time_what_comes_next(self) -> None:
        if self._head_bytes:
            self._open_connections.set_partial_head(self, self._head_bytes)
            if self._deadline is None:
                self._arm(self._header_seconds, self._head_timed_out)
        elif self.timeout_keep_alive_task is None:
            self._disarm()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison] - None before the first request

    # Refusing and closing

    def _refuse(self, error: GatewayError) -> None:
        """Answer the request that is being read, if and only if no other answer is in its way."""
        self._is_deaf = True
        if not self._is_answering():
            if self._is_in_head:
                self._answer(error)
            self._linger()
        elif self._is_in_head or self._running is not self.cycle:
            self._finish_earlier_requests()
        elif self.cycle.response_started:
            self._abandon(self.cycle)
            self._close()
        else:
            self._abandon(self.cycle)
            self._answer(error)
            self._linger()

    def _answer(self, error: GatewayError) -> None:
        headers = self.server_state.default_headers
        self.transport.write(
            refusals.answer(error, headers, documentation_url=self._documentation_url)
        )

    def _finish_earlier_requests(self) -> None:
        if not self._is_in_head:
            self.pipeline.popleft()  # the newest; its body will never be whole
        last = self.pipeline[0][0] if self.pipeline else self._running or self.cycle
        last.keep_alive = False

    def _head_timed_out(self) -> None:
        if self._head_bytes:
            self._refuse(HeadTimedOut(seconds=self._header_seconds))
        else:
            self._close()

    def _close_without_reset(self) -> None:
        if self._is_in_head and not self._is_deaf:
            self._close()
        else:
            self._linger()

    def _abort(self) -> None:
        """Cut the connection at once, for an application that will not complete its answer."""
        if self._running is not None:
            self._abandon(self._running)
        self.transport.abort()

    def _close(self) -> None:
        """Close once all is sent, which a peer that does not read can delay only so long."""
        self.transport.close()
        self._write_deadline.start()

    def _linger(self) -> None:
        """Closing with bytes unread resets the connection, and the peer may lose the answer."""
        self._is_deaf = True
        self._is_lingering = True
        self._open_connections.mark_idle(self)
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        self.transport.write_eof()
        self._arm(LINGER_SECONDS, self.transport.abort)

    def _close_if_idle(self) -> None:
        if not self._is_answering() and self._head_bytes == 0 and not self._is_lingering:
            self._close()

    def _abandon(self, cycle: RequestResponseCycle) -> None:
        cycle.disconnected = True
        cycle.message_event.set()

    def _arm(self, seconds: float, then: Callable[[], None]) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(seconds, then)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Outlet:
    """What an application's answer is written to: the transport, but closing may take a while."""

    __slots__ = ("close", "is_closing", "write")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close
