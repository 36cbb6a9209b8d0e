"""The walk of every request, in the one order of checks.

Route (404, 405), HTTP itself (400), key and permission from the headers alone (401, 403),
media type (415), declared size (413), body (413, 408), JSON and types (400), then the handler.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from tollhouse.api import errors
from tollhouse.api.authentication import authenticate
from tollhouse.api.body import Body, Message, Receive, parse
from tollhouse.api.call import Answer, Call
from tollhouse.api.edge_errors import (
    BodyTooLarge,
    Disconnected,
    MalformedRequest,
    MethodNotAllowed,
    NotBuiltYet,
    UnknownUrl,
)
from tollhouse.api.errors import Presentation, Reply
from tollhouse.api.head import Head, check_http, check_media
from tollhouse.api.house import House
from tollhouse.api.router import Match, Route, Router
from tollhouse.base.errors import GatewayError, InvalidRequest
from tollhouse.base.ids import RequestId, time_ordered_uuid
from tollhouse.contract.bounds import (
    IDEMPOTENCY_KEY_LENGTH_MAX,
    IDEMPOTENCY_KEY_LENGTH_MIN,
    IDEMPOTENCY_KEY_PATTERN,
)
from tollhouse.contract.decoding import decode_query
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.operation import Credential, Operation
from tollhouse.keys.types import Caller
from tollhouse.observability import log, metrics
from tollhouse.observability.context import RequestContext

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

STATUS_CLIENT_GONE: Final = 499
"""What is logged when the caller left; what is sent then reaches somebody only where a server
takes a broken body for a caller who left."""
_IDEMPOTENCY_KEY = re.compile(IDEMPOTENCY_KEY_PATTERN)
_RETRY_COUNT = re.compile(r"[0-9]{1,3}", re.ASCII)


@dataclass(slots=True)
class _Exchange:
    """One request on its way through; filled in as more becomes known."""

    scope: Scope
    head: Head
    body: Body
    context: RequestContext
    now: datetime
    shape: ErrorShape = ErrorShape.OPENAI


class Edge:
    """The ASGI application."""

    def __init__(self, house: House, router: Router) -> None:
        self._house = house
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request; nothing else is spoken here."""
        assert scope["type"] == "http", "the server is configured for HTTP alone"
        started_seconds = self._house.clock.monotonic_seconds()
        exchange = self._exchange(scope, receive)
        status = STATUS_CLIENT_GONE
        try:
            reply = await self._reply(exchange)
            status = reply.status
        except Disconnected:
            reply = self._refusal(exchange, MalformedRequest("The body ended too early."))
        await _send(send, reply, exchange)
        seconds = self._house.clock.monotonic_seconds() - started_seconds
        metrics.request_answered(exchange.context.operation, status=status, seconds=seconds)
        log.request_line(
            exchange.context, status=status, duration_ms=seconds * 1000, now=exchange.now
        )

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
        )

    async def _reply(self, exchange: _Exchange) -> Reply:
        outcome = await errors.or_failure(self._serve(exchange), exchange.context.request_id)
        return outcome if isinstance(outcome, Reply) else self._refusal(exchange, outcome)

    def _refusal(self, exchange: _Exchange, failure: GatewayError) -> Reply:
        exchange.context.error_code = failure.code
        presentation = Presentation(
            request_id=exchange.context.request_id,
            shape=exchange.shape,
            documentation_url=self._house.documentation_url,
        )
        return errors.render(failure, presentation)

    async def _serve(self, exchange: _Exchange) -> Reply:
        match = self._find(exchange)
        method = exchange.scope["method"]
        route = match.route(method)
        if route is None and method != "OPTIONS":
            raise MethodNotAllowed(match.allowed)
        check_http(exchange.head, http_version=exchange.scope["http_version"])
        if route is None:
            return Reply(status=204, headers=(("allow", match.allowed),), body=b"")
        caller = await authenticate(
            self._house, exchange.head, route.operation.access, now=exchange.now
        )
        exchange.context.organization_id = caller.organization_id
        exchange.context.key_id = caller.key_id
        if route.handler is None:
            raise NotBuiltYet
        call = await self._call(exchange, route.operation, caller, match.parameters)
        answer = await route.handler(call)
        return _success(answer)

    def _find(self, exchange: _Exchange) -> Match:
        match = self._router.match(exchange.scope["raw_path"].decode("latin-1"))
        if match is None:
            raise UnknownUrl
        first: Route = next(iter(match.by_method.values()))
        route = match.route(exchange.scope["method"]) or first
        exchange.shape = route.operation.error_shape
        exchange.context.operation = route.operation.id
        return match

    async def _call(
        self, exchange: _Exchange, operation: Operation, caller: Caller, path: dict[str, str]
    ) -> Call[Any, Any, Any]:
        tree, body = await self._read(exchange, operation)
        return Call(
            house=self._house,
            request_id=exchange.context.request_id,
            caller=caller,
            permission=operation.access.permission,
            now=exchange.now,
            path=path,
            target=exchange.scope["path"],
            query=_query(exchange.scope["query_string"], operation),
            body=body,
            tree=tree,
            idempotency_key=_idempotency_key(exchange.head, operation),
        )

    async def _read(self, exchange: _Exchange, operation: Operation) -> tuple[Any, Struct | None]:
        if operation.body is None:
            await _refuse_body(exchange)
            return None, None
        check_media(exchange.head)
        if exchange.head.content_length > self._house.bounds.body_bytes_max:
            raise BodyTooLarge(self._house.bounds.body_bytes_max)
        data = await exchange.body.read()
        metrics.body_read(len(data))
        return await parse(data, operation.body, self._house.parsing_pool)


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
        exchange.head.announces_body and await exchange.body.read()
    ):
        message = "This operation takes no body."
        raise InvalidRequest("invalid_json", message)


def _query(raw: bytes, operation: Operation) -> Struct:
    """Organization routes refuse unknown parameters; a dropped filter would be a wrong answer."""
    ignores_unknown = operation.access.credential is Credential.CUSTOMER
    return decode_query(raw, operation.query or NoQuery, ignores_unknown=ignores_unknown)


def _idempotency_key(head: Head, operation: Operation) -> str:
    if not operation.creates_idempotently:
        return ""
    name = "Idempotency-Key"
    values = head.values(b"idempotency-key")
    if not values:
        message = f"Missing required header: '{name}'."
        raise InvalidRequest("missing_required_parameter", message, param=name)
    key = values[0].decode("latin-1")
    has_length = IDEMPOTENCY_KEY_LENGTH_MIN <= len(key) <= IDEMPOTENCY_KEY_LENGTH_MAX
    if len(values) > 1 or not has_length or _IDEMPOTENCY_KEY.match(key) is None:
        message = (
            f"Invalid '{name}': expected one value of {IDEMPOTENCY_KEY_LENGTH_MIN} to "
            f"{IDEMPOTENCY_KEY_LENGTH_MAX} printable characters."
        )
        raise InvalidRequest("invalid_value", message, param=name)
    return key


def _success(answer: Answer) -> Reply:
    return Reply(status=200, headers=answer.headers, body=msgspec.json.encode(answer.body))


async def _send(send: Send, reply: Reply, exchange: _Exchange) -> None:
    is_unread = not exchange.body.is_finished
    has_content = exchange.scope["method"] != "HEAD" and reply.status != 204  # noqa: PLR2004
    await send(
        {
            "type": "http.response.start",
            "status": reply.status,
            "headers": _headers(reply, exchange, is_closing=is_unread),
        }
    )
    content = reply.body if has_content else b""
    if not is_unread or exchange.head.waits_for_continue or exchange.body.has_timed_out:
        await send({"type": "http.response.body", "body": content})
        return
    await send({"type": "http.response.body", "body": content, "more_body": True})
    await exchange.body.discard()
    await send({"type": "http.response.body", "body": b""})


def _headers(reply: Reply, exchange: _Exchange, *, is_closing: bool) -> list[tuple[bytes, bytes]]:
    request_id = str(exchange.context.request_id).encode()
    headers = [
        (b"x-request-id", request_id),
        (b"cache-control", b"no-store"),
        *((name.encode(), value.encode()) for name, value in reply.headers),
    ]
    if reply.body:
        headers.append((b"content-type", b"application/json"))
        headers.append((b"content-length", str(len(reply.body)).encode()))
    if exchange.shape is ErrorShape.MESSAGES:
        headers.append((b"request-id", request_id))
    if is_closing:
        headers.append((b"connection", b"close"))
    return headers
