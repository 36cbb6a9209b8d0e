"""The walk of every request, in the one order of checks.

Route (404, 405), HTTP itself (400), key and permission from the headers alone (401, 403),
media type (415), declared size (413), requests per minute and at once, Admin requests at once
(429), body (413, 408), JSON and types (400), then the handler or the pipeline.
"""

import dataclasses
import re
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from tollhouse.api import errors
from tollhouse.api.admin_permits import AdminPermit
from tollhouse.api.authentication import authenticate
from tollhouse.api.body import ABORT, Body, Receive, Send
from tollhouse.api.body_quota import HeldBody
from tollhouse.api.call import Answer, Call
from tollhouse.api.customers import entrant, session_of
from tollhouse.api.edge_errors import (
    BodyTooLarge,
    Disconnected,
    MalformedRequest,
    MethodNotAllowed,
    UnknownUrl,
)
from tollhouse.api.errors import Presentation, Reply
from tollhouse.api.head import Head, check_http, check_media, idempotency_key
from tollhouse.api.house import House
from tollhouse.api.router import Match, Route, Router
from tollhouse.api.sending import Framing, headers_of, send_reply
from tollhouse.api.streams import Broadcast, StreamReply
from tollhouse.api.url_advice import UrlAdvice, moved_words
from tollhouse.base.errors import GatewayError, InvalidRequest, without_frames
from tollhouse.base.ids import RequestId, time_ordered_uuid
from tollhouse.contract.decoding import decode_query
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.operation import Credential, Guard, Operation
from tollhouse.inference.calls import InferenceCall
from tollhouse.inference.errors import OutputBufferExceeded
from tollhouse.inference.streaming import StreamedAnswer
from tollhouse.inference.surface import Surface
from tollhouse.inference.trace import Trace
from tollhouse.keys.types import Admin, Caller, Customer
from tollhouse.limits.limiter import UNCOUNTED, Pass
from tollhouse.observability import log, metrics
from tollhouse.observability.context import RequestContext

Scope = MutableMapping[str, Any]

STATUS_CLIENT_GONE: Final = 499
"""What is logged when the caller left; what is sent then reaches somebody only where a server
takes a broken body for a caller who left."""
RECHECK_AFTER_SECONDS: Final = 0.1
"""With the time for which a key is believed, this stays below the second within which a revocation
holds everywhere."""
_RETRY_COUNT = re.compile(r"[0-9]{1,3}", re.ASCII)


@dataclass(slots=True)
class _Exchange:
    """One request on its way through; filled in as more becomes known."""

    scope: Scope
    head: Head
    body: Body
    context: RequestContext
    now: datetime
    started_seconds: float
    shape: ErrorShape = ErrorShape.OPENAI
    traffic: Pass = UNCOUNTED
    trace: Trace | None = None
    session: str | None = None
    held_body: HeldBody | None = None
    permit: AdminPermit | None = None


class Edge:
    """The ASGI application."""

    def __init__(self, house: House, routes: Sequence[Route]) -> None:
        self._house = house
        self._router = Router(routes)
        self._url_advice = UrlAdvice(self._router, routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request; nothing else is spoken here."""
        assert scope["type"] == "http", "the server is configured for HTTP alone"
        exchange = self._exchange(scope, receive)
        try:
            status = await self._respond(exchange, receive, send)
        finally:
            _release_body(exchange)
        self._ended(exchange, status)

    async def _respond(self, exchange: _Exchange, receive: Receive, send: Send) -> int:
        """Send an answer, and return the status that counts."""
        status = STATUS_CLIENT_GONE
        try:
            reply = await self._reply(exchange)
            status = reply.status
        except Disconnected:
            reply = self._refusal(exchange, MalformedRequest("The body ended too early."))
        if isinstance(reply, StreamReply):
            return await self._broadcast(reply, exchange, receive, send)
        # Whoever reads a whole answer slowly has no body in memory meanwhile.
        _release_body(exchange)
        return await self._send(reply, exchange, send, status=status)

    def _ended(self, exchange: _Exchange, status: int) -> None:
        now_seconds = self._house.clock.monotonic_seconds()
        seconds = now_seconds - exchange.started_seconds
        metrics.request_answered(exchange.context.operation, status=status, seconds=seconds)
        if exchange.trace is not None:
            exchange.trace.answered(status=status, now_seconds=now_seconds)
            exchange.trace.tell(exchange.context)
        log.request_line(
            exchange.context, status=status, duration_ms=seconds * 1000, now=exchange.now
        )

    async def _send(self, reply: Reply, exchange: _Exchange, send: Send, *, status: int) -> int:
        """Send a whole answer, counted as buffered until it is read; returns its status.

        What an organization has no room for is refused, however much work it was.
        """
        organization_id = exchange.context.organization_id
        if organization_id is None:
            await send_reply(send, reply, _framing(exchange))
            return status
        output = self._house.buffers.output_of(organization_id)
        piece = None
        try:
            piece = output.begin_write(len(reply.body), _abort_of(exchange))
        except OutputBufferExceeded as failure:
            reply = self._refusal(exchange, without_frames(failure))
            status = reply.status
        try:
            await send_reply(send, reply, _framing(exchange))
        finally:
            output.end_write(piece)
        return status

    async def _broadcast(
        self, reply: StreamReply, exchange: _Exchange, receive: Receive, send: Send
    ) -> int:
        """The status that counts: a caller who left before the end has not been served."""
        if not reply.answer.keeps_request:
            _release_body(exchange)
        head = {"type": "http.response.start", "status": reply.status}
        try:
            await send(head | {"headers": headers_of(reply, _framing(exchange))})
        except BaseException:
            reply.answer.abandon()
            raise
        broadcast = Broadcast(
            reply.answer,
            receive=receive,
            send=send,
            abort=_abort_of(exchange),
            clock=self._house.clock,
            keep_alive_seconds=self._house.keep_alive_seconds,
        )
        await broadcast.run(self._house.tasks)
        return reply.status if broadcast.has_reader else STATUS_CLIENT_GONE

    def _exchange(self, scope: Scope, receive: Receive) -> _Exchange:
        head = Head(scope["headers"])
        bounds = self._house.bounds
        return _Exchange(
            scope=scope,
            head=head,
            body=Body(
                receive,
                bytes_max=bounds.body_bytes_max,
                seconds=bounds.body_seconds,
                is_announced=head.announces_body,
            ),
            context=_context(scope, head),
            now=self._house.clock.now(),
            started_seconds=self._house.clock.monotonic_seconds(),
        )

    async def _reply(self, exchange: _Exchange) -> Reply | StreamReply:
        outcome = await errors.or_failure(self._serve(exchange), exchange.context.request_id)
        if isinstance(outcome, GatewayError):
            return self._refusal(exchange, outcome)
        return outcome

    def _refusal(self, exchange: _Exchange, failure: GatewayError) -> Reply:
        exchange.context.error_code = failure.code
        if exchange.trace is not None:
            exchange.trace.failure = failure
        presentation = Presentation(
            request_id=exchange.context.request_id,
            shape=exchange.shape,
            documentation_url=self._house.documentation_url,
        )
        reply = errors.render(failure, presentation)
        # A refusal for tokens has them already.
        limits = tuple(pair for pair in exchange.traffic.headers if pair not in reply.headers)
        return dataclasses.replace(reply, headers=reply.headers + limits)

    async def _serve(self, exchange: _Exchange) -> Reply | StreamReply:
        match = self._find(exchange)
        method = exchange.scope["method"]
        route = match.route(method)
        if route is None and method != "OPTIONS":
            raise self._not_allowed(exchange, match)
        check_http(exchange.head, http_version=exchange.scope["http_version"])
        if route is None:
            return Reply(status=204, headers=(("allow", match.allowed),), body=b"")
        caller = await authenticate(
            self._house, exchange.head, route.operation.access, now=exchange.now
        )
        exchange.context.organization_id = caller.organization_id
        exchange.context.key_id = caller.key_id
        if isinstance(caller, Customer):
            exchange.trace = self._trace(exchange, route.operation, caller)
        self._check_announced(exchange, route.operation)
        if isinstance(caller, Customer) and Guard.LIMITS in route.operation.guards:
            exchange.traffic = await self._house.limiter.enter(entrant(caller, exchange.context))
        if isinstance(caller, Admin):
            exchange.permit = await self._house.admin_permits.acquire(caller.organization_id)
        try:
            return await self._answer(exchange, route, caller, match.parameters)
        finally:
            if route.surface is None:
                exchange.traffic.leave()
            if exchange.permit is not None:
                exchange.permit.release()

    def _trace(self, exchange: _Exchange, operation: Operation, customer: Customer) -> Trace:
        """From here on there is a record of the request, also if it is refused."""
        return Trace(
            request_id=exchange.context.request_id,
            customer=customer,
            operation=operation.id,
            started_at=exchange.now,
            started_seconds=exchange.started_seconds,
            note=self._house.recorder.note,
        )

    def _check_announced(self, exchange: _Exchange, operation: Operation) -> None:
        """What the headers say of the body can be refused before a byte of it is read."""
        if operation.body is None:
            return
        check_media(exchange.head)
        if exchange.head.content_length > self._house.bounds.body_bytes_max:
            raise BodyTooLarge(self._house.bounds.body_bytes_max)

    async def _answer(
        self, exchange: _Exchange, route: Route, caller: Caller, path: dict[str, str]
    ) -> Reply | StreamReply:
        if route.surface is not None and isinstance(caller, Customer):
            return await self._infer(exchange, route, route.surface, caller)
        assert route.handler is not None, "what is no surface has a handler"
        call = await self._call(exchange, route.operation, caller, path)
        reply = _success(await route.handler(call))
        return dataclasses.replace(reply, headers=reply.headers + exchange.traffic.headers)

    async def _infer(
        self, exchange: _Exchange, route: Route, surface: Surface, customer: Customer
    ) -> Reply | StreamReply:
        assert exchange.trace is not None, "a customer's request has a trace"
        try:
            body = (await self._read(exchange, route.operation, customer))[1]
        except BaseException:
            exchange.traffic.leave()
            raise
        answer = await self._house.pipeline.run(
            InferenceCall(
                request_id=exchange.context.request_id,
                now=exchange.now,
                surface=surface,
                body=body,
                session=exchange.session,
                traffic=exchange.traffic,
                trace=exchange.trace,
                recheck=lambda: self._recheck(exchange, route.operation, customer),
                charge=partial(self._charge, exchange),
            )
        )
        if isinstance(answer, StreamedAnswer):
            return StreamReply(headers=exchange.traffic.headers, answer=answer)
        return Reply(status=200, headers=exchange.traffic.headers, body=answer.body)

    async def _recheck(
        self, exchange: _Exchange, operation: Operation, customer: Customer
    ) -> Customer:
        """The body may have taken a minute; the key is looked at again unless it came at once."""
        passed_seconds = self._house.clock.monotonic_seconds() - exchange.started_seconds
        if passed_seconds < RECHECK_AFTER_SECONDS:
            return customer
        caller = await authenticate(
            self._house, exchange.head, operation.access, now=self._house.clock.now()
        )
        assert isinstance(caller, Customer), "the route is for customers"
        return caller

    def _find(self, exchange: _Exchange) -> Match:
        path = exchange.scope["raw_path"].decode("latin-1")
        match = self._router.match(path)
        if match is None:
            raise UnknownUrl(self._url_advice.for_unknown(exchange.scope["method"], path))
        first: Route = next(iter(match.by_method.values()))
        route = match.route(exchange.scope["method"]) or first
        exchange.shape = route.operation.error_shape
        exchange.context.operation = route.operation.id
        return match

    def _not_allowed(self, exchange: _Exchange, match: Match) -> GatewayError:
        """Where `/manage/v1` has the method that `/v1` lacks, its route is named (OQ-05)."""
        path = exchange.scope["raw_path"].decode("latin-1")
        managed = self._url_advice.managed_route(exchange.scope["method"], path)
        if managed is None:
            return MethodNotAllowed(match.allowed)
        return UnknownUrl(moved_words(managed))

    async def _call(
        self, exchange: _Exchange, operation: Operation, caller: Caller, path: dict[str, str]
    ) -> Call[Any, Any, Any]:
        tree, body = await self._read(exchange, operation, caller)
        if isinstance(caller, Customer):
            caller = await self._recheck(exchange, operation, caller)
        return Call(
            house=self._house,
            request_id=exchange.context.request_id,
            caller=caller,
            permission=operation.access.permission,
            now=exchange.now,
            head=exchange.head,
            path=path,
            target=exchange.scope["path"],
            query=_query(exchange.scope["query_string"], operation),
            body=body,
            tree=tree,
            body_bytes=exchange.body.size_bytes,
            idempotency_key=idempotency_key(exchange.head, operation),
            permit=exchange.permit,
            charge=partial(self._charge, exchange),
        )

    def _charge(self, exchange: _Exchange, busy_seconds: float) -> None:
        if exchange.held_body is not None:
            self._house.body_reader.charge(exchange.held_body, busy_seconds)

    async def _read(
        self, exchange: _Exchange, operation: Operation, caller: Caller
    ) -> tuple[Any, Struct | None]:
        """Check the headers that the operation declares, then read and decode the body."""
        if operation.takes_session:
            exchange.session = session_of(exchange.head)
        if operation.body is None:
            await _refuse_body(exchange)
            return None, None
        held = exchange.held_body = self._house.body_quota.for_request(caller.organization_id)
        return await self._house.body_reader.read(exchange.body, operation.body, caller, held)


def _release_body(exchange: _Exchange) -> None:
    if exchange.held_body is not None:
        exchange.held_body.release()


def _abort_of(exchange: _Exchange) -> Callable[[], None]:
    return exchange.scope.get("extensions", {}).get(ABORT, _leave_open)


def _leave_open() -> None:
    """For servers that cannot cut a connection: they close it when the answer is not complete."""


def _framing(exchange: _Exchange) -> Framing:
    return Framing(
        request_id=exchange.context.request_id,
        method=exchange.scope["method"],
        shape=exchange.shape,
        body=exchange.body,
        waits_for_continue=exchange.head.waits_for_continue,
    )


def _context(scope: Scope, head: Head) -> RequestContext:
    retries = head.text(b"x-stainless-retry-count")
    return RequestContext(
        request_id=RequestId(time_ordered_uuid()),
        method=scope["method"],
        client_request_id=head.text(b"x-client-request-id"),
        retry_count=int(retries) if retries and _RETRY_COUNT.fullmatch(retries) else None,
    )


async def _refuse_body(exchange: _Exchange) -> None:
    if exchange.head.content_length or (
        exchange.head.announces_body and await exchange.body.has_content()
    ):
        message = "This operation takes no body. Leave it out."
        raise InvalidRequest("invalid_json", message)


def _query(raw: bytes, operation: Operation) -> Struct:
    """Organization routes refuse unknown parameters; a dropped filter would be a wrong answer."""
    ignores_unknown = operation.access.credential is Credential.CUSTOMER
    return decode_query(raw, operation.query or NoQuery, ignores_unknown=ignores_unknown)


def _success(answer: Answer) -> Reply:
    return Reply(status=200, headers=answer.headers, body=msgspec.json.encode(answer.body))
