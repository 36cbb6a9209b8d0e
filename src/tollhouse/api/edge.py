"""The ASGI application: every request passes the same checks in the same order.

Route (404, 405), HTTP itself (400), key and permission from the headers alone (401, 403),
media type (415), declared size (413), requests per minute and at once, Admin requests at once
(429), body (413, 408), JSON and types (400), then the handler or the pipeline.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import msgspec
from msgspec import Struct

from tollhouse.activity.rules import outcome
from tollhouse.activity.types import RequestRecord
from tollhouse.api import errors
from tollhouse.api.access import AccessControl, label_of
from tollhouse.api.body import Body, BodyReader, Receive, Scope, Send
from tollhouse.api.call import FileAnswer, OperationCall
from tollhouse.api.edge_errors import (
    BodyTooLarge,
    Disconnected,
    MalformedRequest,
    MethodNotAllowed,
    OperationNotServed,
    UnknownUrl,
)
from tollhouse.api.errors import Presentation, Reply
from tollhouse.api.exchange import Exchange
from tollhouse.api.head import Head, check_http, check_media, idempotency_key
from tollhouse.api.router import Match, Route, Router
from tollhouse.api.sending import ResponseSender, end_pending_of, has_left, send_reply
from tollhouse.api.stream_sender import StreamReply
from tollhouse.api.url_advice import UrlAdvice, moved_words, not_served
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError, InvalidRequest, Kind, without_frames
from tollhouse.base.ids import RequestId, time_ordered_uuid
from tollhouse.base.trace_context import TraceContext
from tollhouse.contract.decoding import decode_query
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.operation import Credential, Operation
from tollhouse.evaluation import OutputBufferExceeded
from tollhouse.inference.calls import InferenceCall
from tollhouse.inference.endpoint import Endpoint
from tollhouse.inference.pipeline import Pipeline
from tollhouse.inference.streaming import StreamedAnswer
from tollhouse.inference.trace import RequestTrace
from tollhouse.keys.types import Admin, Caller, Customer
from tollhouse.observability import log, metrics
from tollhouse.storage.errors import DatabaseUnavailable

STATUS_UNEXPECTED: Final = Kind.UNEXPECTED.value
STATUS_CLIENT_GONE: Final = 499
"""The status that is logged when the caller left before it was answered."""
RECHECK_AFTER_SECONDS: Final = 0.1
"""A key that was authenticated longer ago is looked up again. With the lifetime of a cached key,
this stays below the second within which a revocation takes effect everywhere."""
_RETRY_COUNT: Final = re.compile(rb"[0-9]{1,3}")


class Recording(Struct, frozen=True, kw_only=True):
    """How requests are recorded.

    `record` stores what is known about a customer's request at its end. `trace_context` returns a
    request's place in a trace, by the values of its header `traceparent`; None without spans.
    """

    record: Callable[[RequestRecord], None]
    trace_context: Callable[[RequestId, Sequence[bytes] | None], TraceContext] | None


class Edge:
    """Answers requests. One per worker."""

    def __init__(
        self,
        router: Router,
        *,
        clock: Clock,
        access: AccessControl,
        bodies: BodyReader,
        pipeline: Pipeline,
        recording: Recording,
        sender: ResponseSender,
        documentation_url: str | None,
    ) -> None:
        self._router = router
        self._url_advice = UrlAdvice(router)
        self._clock = clock
        self._access = access
        self._bodies = bodies
        self._pipeline = pipeline
        self._recording = recording
        self._sender = sender
        self._documentation_url = documentation_url
        metrics.operations_served(route.operation.id for route in router.routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, or pass it to the static site at its path."""
        assert scope["type"] == "http", "the server is configured for HTTP alone"
        match = self._router.match(scope["raw_path"].decode("latin-1"))
        if match is None and (site := self._router.site_at(scope["raw_path"])) is not None:
            await site(scope, receive, send)
            return
        exchange = self._exchange(scope, receive, send)
        status = STATUS_UNEXPECTED
        try:
            try:
                reply = await self._reply(exchange, match)
            except Exception as failure:  # a bug must not leave the caller without an answer
                reply = self._failed(exchange, failure)
            status = await self._send(reply, exchange)
        except asyncio.CancelledError:
            status = STATUS_CLIENT_GONE
            raise
        finally:
            exchange.body.release()
            self._log(exchange, status)

    def _exchange(self, scope: Scope, receive: Receive, send: Send) -> Exchange:
        head = Head(scope["headers"])
        retries = head.by_name.get(b"x-stainless-retry-count")
        client_ids = head.by_name.get(b"x-client-request-id")
        request_id, context = RequestId(time_ordered_uuid()), None
        if self._recording.trace_context is not None:
            context = self._recording.trace_context(request_id, head.by_name.get(b"traceparent"))
        return Exchange(
            scope=scope,
            receive=receive,
            send=send,
            head=head,
            body=Body(
                receive,
                self._bodies.bounds,
                is_announced=head.announces_body,
                extensions=scope.get("extensions", {}),
            ),
            trace=RequestTrace(
                request_id=request_id,
                method=scope["method"],
                client_request_id=client_ids[0].decode("latin-1") if client_ids else None,
                retry_count=(
                    int(retries[0]) if retries and _RETRY_COUNT.fullmatch(retries[0]) else None
                ),
                context=context,
                started_at=self._clock.now(),
                started_seconds=self._clock.monotonic_seconds(),
                record=self._recording.record,
            ),
        )

    async def _reply(
        self, exchange: Exchange, match: Match | None
    ) -> Reply | StreamReply | FileAnswer:
        """Return the answer to a request; raise what refuses it."""
        found, route = self._find(exchange, match)
        if route is None:
            return Reply(status=204, headers=(("allow", found.allowed),), body=b"")
        caller = await self._authenticate_and_limit(exchange, route)
        if route.endpoint is None or isinstance(caller, Admin):
            end_pending_of(exchange)()
            return await self._handle(exchange, route, caller, found.parameters)
        # A hold that is committed takes over the permit.
        try:
            answer = await self._pipeline.run(
                await self._inference_call(exchange, route, route.endpoint, caller)
            )
        finally:
            # Without a hold the request used no tokens.
            exchange.permit.leave(used_tokens=0)
        if isinstance(answer, StreamedAnswer):
            return StreamReply(headers=exchange.permit.headers, answer=answer)
        return Reply(
            status=200,
            headers=exchange.permit.headers,
            body=answer.body,
            is_events=answer.is_events,
        )

    def _failed(self, exchange: Exchange, failure: Exception) -> Reply:
        """Render a failure. It loses its frames: a refused request must not stay in memory."""
        if isinstance(failure, GatewayError):
            return self._refusal(exchange, without_frames(failure))
        if isinstance(failure, Disconnected):
            exchange.has_caller_left = True
            # Some servers report a malformed body as a disconnect; only then is this read.
            return self._refusal(exchange, MalformedRequest("The body ended too early."))
        return self._refusal(exchange, errors.unexpected(failure, exchange.trace.request_id))

    def _find(self, exchange: Exchange, match: Match | None) -> tuple[Match, Route | None]:
        """Return the routes of the path, and that of the method; None for OPTIONS."""
        method = exchange.scope["method"]
        if match is None:
            path = exchange.scope["raw_path"].decode("latin-1")
            if (operation := not_served(path)) is not None:
                raise OperationNotServed(operation)
            raise UnknownUrl(self._url_advice.for_unknown(method, path))
        route = match.route(method)
        known: Route = route or next(iter(match.by_method.values()))
        exchange.shape = known.operation.error_shape
        exchange.trace.operation = known.operation.id
        if route is None and method != "OPTIONS":
            raise self._not_allowed(exchange, match)
        check_http(exchange.head, http_version=exchange.scope["http_version"])
        return match, route

    def _not_allowed(self, exchange: Exchange, match: Match) -> GatewayError:
        """Return the error for a wrong method; it names a route under `/manage/v1` (OQ-05)."""
        path = exchange.scope["raw_path"].decode("latin-1")
        managed = self._url_advice.managed_route(exchange.scope["method"], path)
        if managed is None:
            return MethodNotAllowed(allowed=match.allowed)
        return UnknownUrl(moved_words(managed))

    async def _authenticate_and_limit(self, exchange: Exchange, route: Route) -> Caller:
        """Authenticate the caller, check the declared body, and acquire the request's permits."""
        trace = exchange.trace
        try:
            caller = await self._access.authenticate(
                exchange.head, route.required, now=trace.started_at
            )
        except DatabaseUnavailable:
            self._access.identify_later(exchange.head, route.required, trace)
            raise
        # From here on a customer's request is recorded, also if it is refused.
        trace.caller = caller
        if route.operation.body is not None:
            check_media(exchange.head)
            if exchange.head.content_length > self._bodies.bounds.bytes_max:
                raise BodyTooLarge(bytes_max=self._bodies.bounds.bytes_max)
        if isinstance(caller, Admin):
            exchange.admin_permit = await self._access.admin_permit(caller)
        elif route.is_limited:
            is_prompt = route.endpoint is not None and exchange.head.content_length > 0
            exchange.permit = await self._access.limit_permit(
                caller,
                trace.request_id,
                prompt_bytes=exchange.head.content_length if is_prompt else None,
            )
        return caller

    async def _inference_call(
        self, exchange: Exchange, route: Route, endpoint: Endpoint, customer: Customer
    ) -> InferenceCall:
        """Check the headers of the protocol, read the body, and return the pipeline's call."""
        if route.check_head is not None:
            route.check_head(exchange.head)
        _, body = await self._read(exchange, route.operation, customer)
        is_charged = exchange.body.charged_to is not None
        return InferenceCall(
            request_id=exchange.trace.request_id,
            now=exchange.trace.started_at,
            endpoint=endpoint,
            body=body,
            session=exchange.session,
            permit=exchange.permit,
            trace=exchange.trace,
            recheck=partial(self._recheck, exchange, route, customer),
            charge_cpu=partial(self._bodies.charge, exchange.body) if is_charged else None,
            end_pending=end_pending_of(exchange),
            has_left=partial(has_left, exchange),
        )

    async def _handle(
        self, exchange: Exchange, route: Route, caller: Caller, parameters: dict[str, str]
    ) -> Reply | FileAnswer:
        """Read the body and run the handler, while the request keeps its permits.

        A file keeps its permit until it is sent.
        """
        assert route.handler is not None, "a route without an endpoint has a handler"
        is_file = False
        try:
            call = await self._call(exchange, route, caller, parameters)
            answer = await route.handler(call)
            is_file = isinstance(answer, FileAnswer)
        finally:
            exchange.permit.leave(used_tokens=0)
            if exchange.admin_permit is not None and not is_file:
                exchange.admin_permit.release()
        if isinstance(answer, FileAnswer):
            return answer
        return Reply(
            status=200,
            headers=answer.headers + exchange.permit.headers,
            body=msgspec.json.encode(answer.body),
        )

    async def _call(
        self, exchange: Exchange, route: Route, caller: Caller, path: dict[str, str]
    ) -> OperationCall[Any, Any, Any]:
        operation = route.operation
        tree, body = await self._read(exchange, operation, caller)
        if isinstance(caller, Customer):
            caller = await self._recheck(exchange, route, caller)
        return OperationCall(
            request_id=exchange.trace.request_id,
            caller=caller,
            permission=operation.access.permission,
            now=exchange.trace.started_at,
            head=exchange.head,
            path=path,
            target=exchange.scope["path"],
            query=_query(exchange.scope["query_string"], operation),
            body=body,
            tree=tree,
            body_bytes=exchange.body.size_bytes,
            idempotency_key=idempotency_key(exchange.head, operation),
            permit=exchange.admin_permit,
            charge=partial(self._bodies.charge, exchange.body),
        )

    async def _read(
        self, exchange: Exchange, operation: Operation, caller: Caller
    ) -> tuple[Any, Struct | None]:
        """Check the session headers if the operation has them, then read and decode the body."""
        if operation.takes_session:
            exchange.session = self._access.session_of(exchange.head)
            exchange.trace.label = label_of(exchange.head)
        if operation.body is None:
            await _refuse_body(exchange)
            return None, None
        return await self._bodies.read(exchange.body, operation.body, caller)

    async def _recheck(self, exchange: Exchange, route: Route, customer: Customer) -> Customer:
        """Authenticate again if the body took long to arrive; otherwise return `customer`."""
        passed_seconds = self._clock.monotonic_seconds() - exchange.trace.started_seconds
        if passed_seconds < RECHECK_AFTER_SECONDS:
            return customer
        caller = await self._access.authenticate(
            exchange.head, route.required, now=self._clock.now()
        )
        assert isinstance(caller, Customer), "the route is for customers"
        return caller

    def _refusal(self, exchange: Exchange, failure: GatewayError) -> Reply:
        exchange.trace.failure = failure
        presentation = Presentation(
            request_id=exchange.trace.request_id,
            shape=exchange.shape,
            documentation_url=self._documentation_url,
        )
        reply = errors.render(failure, presentation)
        # A refusal by the token limit has the limit headers already.
        limits = tuple(pair for pair in exchange.permit.headers if pair not in reply.headers)
        return msgspec.structs.replace(reply, headers=reply.headers + limits)

    async def _send(self, reply: Reply | StreamReply | FileAnswer, exchange: Exchange) -> int:
        """Send an answer, and return the status to log."""
        if isinstance(reply, FileAnswer):
            is_read = await self._sender.send_file(reply, exchange)
            return HTTPStatus.OK if is_read else STATUS_CLIENT_GONE
        if isinstance(reply, StreamReply):
            reply.answer.when_request_is_free(exchange.body.release)
            is_read = await self._sender.send_stream(reply, exchange)
            return reply.status if is_read else STATUS_CLIENT_GONE
        # The body's memory is free while a slow caller reads the answer.
        exchange.body.release()
        try:
            is_read = await self._sender.send(reply, exchange)
        except OutputBufferExceeded as failure:
            reply = self._refusal(exchange, without_frames(failure))
            is_read = await send_reply(reply, exchange)
        # A refusal keeps its status: a caller that gave up must not hide what failed.
        is_known = is_read or exchange.trace.failure is not None
        return reply.status if is_known and not exchange.has_caller_left else STATUS_CLIENT_GONE

    def _log(self, exchange: Exchange, status: int) -> None:
        trace, now_seconds = exchange.trace, self._clock.monotonic_seconds()
        seconds = now_seconds - trace.started_seconds
        ended = outcome(status, trace.error_code)
        metrics.request_answered(trace.operation, status=status, outcome=ended, seconds=seconds)
        trace.answered(status=status, now_seconds=now_seconds)
        if log.are_requests_logged():
            log.request_line(trace.log_line(status=status, duration_ms=seconds * 1000))


async def _refuse_body(exchange: Exchange) -> None:
    if exchange.head.content_length or (
        exchange.head.announces_body and await exchange.body.has_content()
    ):
        message = "This operation takes no body. Leave it out."
        raise InvalidRequest("invalid_json", message)


def _query(raw: bytes, operation: Operation) -> Struct:
    """Decode the query. Admin operations refuse unknown parameters.

    If they ignored a misspelled filter, the answer would be wrong.
    """
    ignores_unknown = operation.access.credential is Credential.CUSTOMER
    return decode_query(raw, operation.query or NoQuery, ignores_unknown=ignores_unknown)
