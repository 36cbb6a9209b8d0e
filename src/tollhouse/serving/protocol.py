"""uvicorn's HTTP/1.1 connection, with bounds on everything that a peer can send or delay.

This class handles what its parent does not:

- It bounds the bytes and the time of a head, also on a connection that never sends a byte.
- It bounds chunk extensions and trailers, and keeps trailers out of the headers of the request.
- It refuses transfer codings other than `chunked`, which a proxy may read differently.
- It ignores an offer to upgrade. The parent's parser takes the body for the next request.
- It writes no second answer if bytes cannot be parsed while an answer is outstanding.
- It reads on for a while before it closes: a reset would destroy the answer.
- It closes the connection of a peer that does not read.
- It reports a disconnect to every application that runs on the connection.
- It refuses new requests while the server is overloaded, before anything else is done with them.
"""

import asyncio
from typing import Any, cast

import httptools
from uvicorn import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tollhouse.api.body import ABORT, ADMITTED, HAS_LEFT, TAKE_ARRIVED_BODY
from tollhouse.api.edge_errors import HeadTimedOut, HeadTooLarge, MalformedRequest
from tollhouse.base.errors import GatewayError
from tollhouse.serving import connections
from tollhouse.serving.connections import (
    ClientConnections,
    ConnectionBounds,
    ConnectionTimer,
    Input,
    Phase,
)
from tollhouse.serving.cycle import (
    SHED,
    Cycle,
    CycleTransport,
    UnparsedChunks,
    complete_scope,
    disconnect,
    end_body,
    head_without_upgrade,
    is_body_chunked,
)
from tollhouse.serving.load_shedder import PENDING_TARGET, LoadShedder
from tollhouse.serving.refusals import refusal
from tollhouse.serving.write_deadline import WriteDeadline


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection. While no answer is outstanding, exactly one timer is running."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        bounds: ConnectionBounds,
        open_connections: ClientConnections,
        shedder: LoadShedder,
        documentation_url: str | None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._application: Any = self.app  # pyright: ignore[reportUnknownMemberType] - untyped
        self._bounds = bounds
        self._open_connections = open_connections
        self._shedder = shedder
        self._documentation_url = documentation_url
        self._timer = ConnectionTimer(self.loop)
        self._running: Cycle | None = None
        self._phase = Phase.OPEN
        self._input = Input.HEAD
        self._head_bytes = 0
        self._read_scope: Any = None
        self._framing_bytes_left = 0
        self._unparsed: UnparsedChunks | None = None

    # Called by the transport

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the timer of the first head."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=connections.WRITE_BUFFER_BYTES)
        self._extensions = {ABORT: self._abort, HAS_LEFT: self._has_left, ADMITTED: self._admitted}
        self._write_deadline = WriteDeadline(
            transport, self.loop, seconds=self._bounds.write_seconds
        )
        self._open_connections.add(self)
        cycle_transport = CycleTransport(transport, close=self._close_without_reset)
        self._cycle_transport = cast("asyncio.Transport", cycle_transport)
        self._timer.start(self._bounds.header_seconds, self._head_timed_out)

    def data_received(self, data: bytes) -> None:
        """Feed the parser in pieces, so that no head exceeds its bound before it is counted."""
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        if self._shedder.pending >= PENDING_TARGET and (answer := self._refusal_of_whole(data)):
            self.transport.write(answer)
            self._time_next_head()
            return
        start = 0
        while start < len(data) and self._phase < Phase.IGNORING:
            end = start + self._bounds.header_bytes_max
            if self._input is Input.HEAD:
                end = min(end - self._head_bytes, start + connections.PIECE_BYTES)
            elif self._input is Input.CHUNKS:
                end = start + connections.PIECE_BYTES
            self._parse(data[start:end])
            start = end
        if self._unparsed is not None and self._unparsed.ends_with(data):
            end_body(self.cycle)
        if self._input is not Input.HEAD:
            if self.cycle is SHED and self._phase < Phase.IGNORING:
                self._answer_shed(keeps_alive=False)
            self._open_connections.record_progress(self)
        elif self._phase < Phase.IGNORING and not self._is_answering():
            self._time_next_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the disconnect to the running application; the parent reports it to the newest."""
        self._timer.stop()
        self._unset_keepalive_if_required()  # the parent keeps it after a reset
        self._write_deadline.stop()
        self._open_connections.remove(self)
        if self._running is not None and not self._running.response_complete:
            disconnect(self._running)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the write deadline: the peer reads slower than answers or refusals are written."""
        super().pause_writing()
        self._write_deadline.start()
        if not self._is_answering():
            self.flow.pause_reading()

    def resume_writing(self) -> None:
        """Stop the write deadline, unless the connection is closing: its peer must read all."""
        if not self.transport.is_closing():
            self._write_deadline.stop()
        super().resume_writing()
        if not self._is_answering():
            self.flow.resume_reading()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which no request came."""
        if not self.transport.is_closing():
            self._close()

    def shutdown(self) -> None:
        """Finish running requests, answer what arrives within the grace, then close."""
        self._phase = max(self._phase, Phase.DRAINING)
        self.timeout_keep_alive = connections.IDLE_GRACE_SECONDS
        if self._is_answering():
            self.cycle.keep_alive = False
        elif self._input is Input.HEAD and self._phase is Phase.DRAINING:
            self._unset_keepalive_if_required()
            self._time_next_head()

    # Called by the parser

    def on_headers_complete(self) -> None:
        """Start the request. Refuses it by raising, which the parser reports as its own error."""
        if self.parser.should_upgrade():
            return
        version = self.parser.get_http_version()
        is_chunked = is_body_chunked(self.headers, version)
        if is_chunked is None or len(self.pipeline) >= connections.PIPELINED_REQUESTS_MAX:
            raise MalformedRequest
        complete_scope(self.scope, self.parser, self.url, version)
        self._timer.stop()
        self._input = Input.CHUNKS if is_chunked else Input.BODY
        self._head_bytes = 0
        self._read_scope = self.scope
        self._framing_bytes_left = connections.FRAMING_BYTES_MAX
        if not self._is_answering() and self._shedder.must_shed(self.scope["path"]):
            self.cycle = SHED
            return
        # Trailers go to a new list that is never read; the request keeps the old one.
        self.headers = []
        self._begin(keeps_alive=version == "1.1" and self._phase is Phase.OPEN)

    def on_body(self, body: bytes) -> None:
        """Buffer the content until the application reads it; it allows more framing."""
        self._framing_bytes_left += len(body) + len(body) // connections.FRAMING_CONTENT_BYTES
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """End the request; the next byte begins a new head."""
        if self.parser.should_upgrade():
            return
        self._input = Input.HEAD
        self._framing_bytes_left = 0
        if not self.cycle.response_complete:
            end_body(self.cycle)
            if self._running is not None and self._running is self.cycle:
                self._open_connections.mark_busy(self)
                self._running.start_pending(self._shedder)
        elif self.cycle is SHED:
            keeps_alive = self._phase is Phase.OPEN and self.parser.should_keep_alive()
            self._answer_shed(keeps_alive=keeps_alive)

    # Called by the running application

    def on_response_complete(self) -> None:
        """Start the next request, unless the connection is about to close."""
        if self._phase is Phase.LINGERING:
            self.server_state.total_requests += 1
            return
        if self.pipeline:
            self._running = cast("Cycle", self.pipeline[-1][0])
            if not self._running.more_body:
                self._running.start_pending(self._shedder)
        super().on_response_complete()
        is_in_body = self._input is not Input.HEAD
        if self._is_answering():
            if is_in_body and self._running is self.cycle:
                self._open_connections.mark_receiving(self)
            return
        if is_in_body:
            # The rest of an answered request is read and dropped, but only for so long.
            self._timer.start(connections.LINGER_SECONDS, self.transport.abort)
        self._open_connections.mark_idle(self)

    def _answered_early(self) -> None:
        """Drop the rest of a request whose answer is written; chunks would take long to parse."""
        self._open_connections.mark_idle(self)
        if self._input is Input.CHUNKS and not self.cycle.keep_alive:
            self._phase = max(self._phase, Phase.IGNORING)
            self._unparsed = UnparsedChunks()

    # Reading

    def _parse(self, piece: bytes) -> None:
        if self._input is Input.HEAD:
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
            if self._head_bytes >= self._bounds.header_bytes_max:
                self._refuse(HeadTooLarge(bytes_max=self._bounds.header_bytes_max))
            elif self._framing_bytes_left < 0:
                self._refuse(MalformedRequest())
            self._framing_bytes_left = min(self._framing_bytes_left, connections.FRAMING_BYTES_MAX)
            if self.scope is not self._read_scope and not self._head_bytes:
                self._head_bytes = 1  # at least: another head began behind the end of a request

    def _begin(self, *, keeps_alive: bool) -> None:
        """Start the application, or queue the request behind the one that is being answered."""
        cycle = Cycle(
            scope=self.scope,
            transport=self._cycle_transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=keeps_alive and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        cycle.on_early_answer = self._answered_early
        scope: Any = self.scope
        scope["extensions"] = {TAKE_ARRIVED_BODY: cycle.take_arrived_body, **self._extensions}
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
        """Parse the request again without the offer, which the parser cannot ignore."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse(MalformedRequest())
            return
        head = head_without_upgrade(method, self.url, self.parser.get_http_version(), self.headers)
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._head_bytes = 0
        self._parse(head + rest)

    def _time_next_head(self) -> None:
        self._open_connections.set_partial_head(self, self._head_bytes)
        if self._head_bytes and not self._timer.is_running:
            self._timer.start(self._bounds.header_seconds, self._head_timed_out)
        elif not self._head_bytes and self.timeout_keep_alive_task is None:
            self._timer.stop()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison] - None before the first request

    # Refusing and closing

    def _refuse(self, error: GatewayError) -> None:
        """Answer the request that is being read, if no earlier answer is outstanding."""
        self._phase = max(self._phase, Phase.IGNORING)
        is_in_head = self._input is Input.HEAD
        if not self._is_answering():
            if is_in_head or self.cycle is SHED:
                self._answer(error)
            self._linger()
        elif is_in_head or self._running is not self.cycle:
            self._finish_earlier_requests()
        else:
            disconnect(self.cycle)
            if self.cycle.response_started:
                self._close()
            else:
                self._answer(error)
                self._linger()

    def _answer(self, error: GatewayError) -> None:
        headers = self.server_state.default_headers
        self.transport.write(refusal(error, headers, documentation_url=self._documentation_url))

    def _answer_shed(self, *, keeps_alive: bool) -> None:
        """Answer a request that is shed. The connection closes if its body is not complete."""
        method, headers = self.parser.get_method(), self.server_state.default_headers
        answer = self._shedder.refusals.answer(method, self.url, headers, keeps_alive=keeps_alive)
        self.transport.write(answer)
        if not keeps_alive:
            self._linger()

    def _refusal_of_whole(self, data: bytes) -> bytes | None:
        """Return the answer to the data if they are one whole request, and it is shed."""
        is_next = self._input is Input.HEAD and self._head_bytes == 0 and not self._is_answering()
        if not is_next or self._phase > Phase.OPEN or len(data) > self._bounds.header_bytes_max:
            return None
        return self._shedder.refusal_of_whole(data, self.server_state.default_headers)

    def _finish_earlier_requests(self) -> None:
        if self._input is not Input.HEAD:
            self.pipeline.popleft()  # the newest, whose body will never be complete
        last = self.pipeline[0][0] if self.pipeline else self._running or self.cycle
        last.keep_alive = False

    def _head_timed_out(self) -> None:
        if self._head_bytes:
            self._refuse(HeadTimedOut(seconds=self._bounds.header_seconds))
        else:
            self._close()

    def _close_without_reset(self) -> None:
        if self._input is Input.HEAD and self._phase < Phase.IGNORING:
            self._close()
        else:
            self._linger()

    def _abort(self) -> None:
        """Close the connection at once, for an application that will not complete its answer."""
        if self._running is not None:
            disconnect(self._running)
        self.transport.abort()

    def _admitted(self) -> None:
        if self._running is not None:
            self._running.end_pending()

    def _has_left(self) -> bool:
        return self._running is not None and self._running.disconnected

    def _close(self) -> None:
        """Close once all is sent, or at the write deadline if the peer does not read."""
        self.transport.close()
        self._write_deadline.start()

    def _linger(self) -> None:
        """Read and drop for a while before closing: a reset would destroy the answer."""
        self._phase = max(self._phase, Phase.LINGERING)
        self._open_connections.mark_idle(self)
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        self.transport.write_eof()
        self._timer.start(connections.LINGER_SECONDS, self.transport.abort)
