"""A chat request and everything that can be wrong with it, in the order of checks.

Each fault is about a part of its own, so that a request can have two of them at once.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2

from tests.inference.staging import BODY_BYTES_MAX, IMPATIENT, LOCKED, PATH, SILENT, Stage
from tests.support.deployment import chat

Told = tuple[int, str, str, str | None]
"""Status, type, code and parameter."""

PIECE_BYTES = 4_096
UNKNOWN_POLICY = "pol_018f0000000070008000000000000001"


@dataclass(frozen=True, kw_only=True)
class Request:
    """Sound, until somebody spoils it."""

    path: str = PATH
    method: str = "POST"
    host: str = "gateway.example"
    credential: str = "able"
    is_full: bool = False
    is_spent: bool = False
    is_capped: bool = False
    content_type: str = "application/json"
    size: str = "usual"
    is_json: bool = True
    fields: dict[str, Any] = field(default_factory=dict[str, Any])

    async def send(self, stage: Stage) -> httpx2.Response:
        group = self.is_full, self.is_spent, self.is_capped
        headers = {"host": self.host, "content-type": self.content_type}
        if (key := stage.keys.get((group, self.credential))) is not None:
            headers["authorization"] = f"Bearer {key}"
        return await stage.client.request(
            self.method, self.path, content=self._content(), headers=headers
        )

    def having(self, **fields: object) -> "Request":
        return replace(self, fields=self.fields | fields)

    def selecting(self, policy_id: str) -> "Request":
        return self.having(policy_ids=[*self.fields.get("policy_ids", []), policy_id])

    def _content(self) -> bytes | AsyncIterator[bytes]:
        body = json.dumps(chat(**self.fields)).encode()
        if not self.is_json:
            body = b"{" + body
        if self.size == "usual":
            return body
        padded = body.ljust(BODY_BYTES_MAX + 1)
        return padded if self.size == "declared" else _pieces(padded)


async def _pieces(body: bytes) -> AsyncGenerator[bytes]:
    """Of unknown length, as far as the gateway is told."""
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


Spoil = Callable[[Request, Stage], Request]
"""Adds one fault, and leaves what else is wrong."""

FAULTS: dict[str, tuple[Spoil, Told]] = {}
"""Each with how it is told, earlier checks first."""


def fault(name: str, status: int, kind: str, code: str, param: str | None, spoil: Spoil) -> None:
    FAULTS[name] = spoil, (status, kind, code, param)


INVALID = "invalid_request_error"
fault("path", 404, INVALID, "unknown_url", None, lambda r, _: replace(r, path="/v1/chat"))
fault("method", 405, INVALID, "method_not_allowed", None, lambda r, _: replace(r, method="PUT"))
fault("host", 400, INVALID, "malformed_request", None, lambda r, _: replace(r, host="a/b"))
fault("no key", 401, INVALID, "missing_api_key", None, lambda r, _: replace(r, credential="none"))
fault(
    *("powerless key", 403, INVALID, "insufficient_permissions", None),
    lambda r, _: replace(r, credential="powerless"),
)
fault(
    *("media", 415, INVALID, "unsupported_media_type", None),
    lambda r, _: replace(r, content_type="text/plain"),
)
fault(
    *("declared size", 413, INVALID, "request_too_large", None),
    lambda r, _: replace(r, size="declared"),
)
fault(
    *("too many at once", 429, "rate_limit_error", "concurrency_limit_exceeded", None),
    lambda r, _: replace(r, is_full=True),
)
fault(
    *("counted size", 413, INVALID, "request_too_large", None),
    lambda r, _: replace(r, size="counted"),
)
fault("JSON", 400, INVALID, "invalid_json", None, lambda r, _: replace(r, is_json=False))
fault("schema", 400, INVALID, "unknown_parameter", "zz", lambda r, _: r.having(zz=1))
fault(
    *("combination", 400, INVALID, "invalid_parameter_combination", "top_logprobs"),
    lambda r, _: r.having(top_logprobs=1, logprobs=False),
)
fault("model", 404, INVALID, "model_not_found", "model", lambda r, _: r.having(model="none"))
fault("locked", 403, INVALID, "model_locked", "model", lambda r, _: r.having(model=LOCKED))
fault(
    *("not ready", 503, "service_unavailable_error", "service_unavailable", "model"),
    lambda r, _: r.having(model=SILENT),
)
fault(
    *("unknown policy", 404, INVALID, "policy_not_found", "policy_ids"),
    lambda r, _: r.selecting(UNKNOWN_POLICY),
)
fault(
    *("option", 501, INVALID, "unsupported_parameter", "audio"),
    lambda r, _: r.having(audio={"voice": "x"}),
)
fault(
    *("bound", 400, INVALID, "integer_above_max_value", "max_tokens"),
    lambda r, _: r.having(max_tokens=4097),
)
fault(
    *("tokens", 429, "rate_limit_error", "rate_limit_exceeded", None),
    lambda r, _: replace(r, is_spent=True),
)
fault(
    *("cap", 402, "insufficient_quota", "project_spend_limit_exceeded", None),
    lambda r, _: replace(r, is_capped=True),
)


def scripted(**script: object) -> list[dict[str, str]]:
    return [{"role": "user", "content": json.dumps({"script": script})}]


fault(
    *("backend refuses", 422, INVALID, "provider_validation_failed", None),
    lambda r, _: r.having(messages=scripted(status=400)),
)
fault(
    *("backend fails", 502, "server_error", "backend_error", None),
    lambda r, _: r.having(messages=scripted(status=500)),
)
fault(
    *("backend is busy", 503, "service_unavailable_error", "server_is_overloaded", None),
    lambda r, _: r.having(messages=scripted(status=429)),
)
fault(
    *("backend is late", 504, "server_error", "deadline_exceeded", None),
    lambda r, _: r.having(model=IMPATIENT, messages=scripted(cut={"how": "stall"})),
)

EXCLUSIVE = (
    {"no key", "powerless key"},
    {"declared size", "counted size"},
    {"model", "locked", "not ready", "backend is late"},
    {"backend refuses", "backend fails", "backend is busy", "backend is late"},
)
"""These are about the same part of the request."""


def spoilt(stage: Stage, *names: str) -> Request:
    request = Request()
    for name in names:
        spoil, _ = FAULTS[name]
        request = spoil(request, stage)
    return request
