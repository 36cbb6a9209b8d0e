"""A gateway at a URL, as an Admin key sees it."""

import hashlib
import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from tollhouse.base.clock import SystemClock
from tollhouse.base.errors import GatewayError, InvalidInput, Kind
from tollhouse.cli.verbs.gateway import Headers, OperationRequest
from tollhouse.cli.verbs.profiles import Login
from tollhouse.contract.operation import AnyOperation

ATTEMPTS_MAX: Final = 3
TIMEOUT_SECONDS: Final = 120.0
WAIT_SECONDS_MAX: Final = 10.0
PIECE_BYTES: Final = 65_536


class GatewayUnreachable(GatewayError):
    """The gateway did not answer over HTTP."""

    kind = Kind.UNAVAILABLE
    code = "gateway_unreachable"
    template = (
        "{self.url} does not answer: {self.reason}. Check the address and that the gateway runs."
    )
    url: str
    reason: str


class RefusedByGateway(GatewayError):
    """The gateway's own refusal, with its message."""

    kind = Kind.DENIED
    template = "{self.words}"
    code: str
    words: str


class ArgumentsRefused(InvalidInput):
    """The gateway's own refusal of what was sent."""

    template = "{self.words}"
    code: str
    words: str


class HttpGateway:
    """A gateway at a URL, as an Admin key sees it."""

    def __init__(self, login: Login) -> None:
        self._url = login.url
        self._key = login.admin_key
        self.identity = hashlib.sha256(f"{login.url} {login.admin_key}".encode()).hexdigest()
        # A redirect could take the key to another host.
        self._opener = urllib.request.build_opener(_NoRedirects)

    def now(self) -> datetime:
        """Return the time of this machine."""
        return SystemClock().now()

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""

    def call(
        self, operation: AnyOperation, request: OperationRequest
    ) -> tuple[dict[str, Any], Headers]:
        """Return the answer and its headers. Raises `GatewayError`."""
        with closing(self._opened(operation, request)) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            try:
                return msgspec.json.decode(response.read()), headers
            except (msgspec.MsgspecError, OSError, http.client.HTTPException) as error:
                raise GatewayUnreachable(url=self._url, reason=f"no JSON ({error})") from None

    def download(self, operation: AnyOperation, request: OperationRequest) -> Iterator[bytes]:
        """Yield the pieces of a file. Raises `GatewayError`, also if it breaks off."""
        with closing(self._opened(operation, request)) as response:
            try:
                while piece := response.read(PIECE_BYTES):
                    yield piece
            except (OSError, http.client.HTTPException):
                raise GatewayUnreachable(url=self._url, reason="the file broke off") from None

    def _opened(
        self, operation: AnyOperation, request: OperationRequest
    ) -> http.client.HTTPResponse:
        """Send the request, and again after a failure if that cannot do it twice."""
        is_safe = operation.method != "POST" or bool(request.idempotency_key)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            is_last = attempt == ATTEMPTS_MAX or not is_safe
            try:
                return self._opener.open(self._message(operation, request), timeout=TIMEOUT_SECONDS)
            except urllib.error.HTTPError as error:
                wait = float(error.headers.get("retry-after", "nan"))
                may_help = error.headers.get("x-should-retry") != "false"
                if is_last or not may_help or not wait <= WAIT_SECONDS_MAX:
                    raise _refusal(error) from None
            except (OSError, http.client.HTTPException) as error:
                if is_last or isinstance(error, ssl.SSLError):
                    reason = str(getattr(error, "reason", error))
                    raise GatewayUnreachable(url=self._url, reason=reason) from None
                wait = attempt
            time.sleep(wait)
        raise AssertionError

    def _message(
        self, operation: AnyOperation, request: OperationRequest
    ) -> urllib.request.Request:
        query = request.encoded_query()
        url = f"{self._url}{request.target(operation)}{f'?{query}' if query else ''}"
        headers = {"Authorization": f"Bearer {self._key}", "User-Agent": "tollhouse"}
        data = None
        if operation.body is not None:
            headers["Content-Type"] = "application/json"
            data = msgspec.json.encode(request.body or {})
        if request.idempotency_key:
            headers["Idempotency-Key"] = request.idempotency_key
        return urllib.request.Request(url, data=data, headers=headers, method=operation.method)  # noqa: S310 - `Login` has an http URL


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """Refuse: the answer is then an error with its status."""


def _refusal(answer: urllib.error.HTTPError) -> GatewayError:
    """Return the gateway's message as an error, with the address of its page if there is one."""
    try:
        error = msgspec.json.decode(answer.read())["error"]
        code, words = str(error["code"]), str(error["message"])
    except (msgspec.MsgspecError, KeyError, TypeError, OSError):
        code, words = "unexpected_answer", f"The answer has status {answer.code} and no message."
    else:
        page, request_id = error.get("doc_url"), error.get("request_id")
        if page and page not in words:
            words += f" See {page}"
        if answer.code >= Kind.UNEXPECTED and request_id:
            words += f" The request ID is {request_id}."
    if answer.code == Kind.INVALID:
        return ArgumentsRefused(code=code, words=words)
    return RefusedByGateway(code=code, words=words)
