"""Renders the parameters of operations for the OpenAPI document."""

import re
from typing import Any

import msgspec

from tollhouse.contract import schemas
from tollhouse.contract.bounds import (
    BETA_FLAGS_LENGTH_MAX,
    IDEMPOTENCY_KEY_LENGTH_MAX,
    IDEMPOTENCY_KEY_LENGTH_MIN,
    PATH_ID_LENGTH_MAX,
    SESSION_ID_LENGTH_MAX,
)
from tollhouse.contract.descriptions import SHARED
from tollhouse.contract.messages import BETA_HEADER, VERSION_HEADER
from tollhouse.contract.operation import Operation
from tollhouse.contract.operations import COUNT_TOKENS, CREATE_CHAT_COMPLETION
from tollhouse.contract.origins import (
    GIVEN,
    ORIGIN_MEMBER,
    PARTS_MEMBER,
    QUESTIONS_MEMBER,
    Origin,
    adopted,
    given,
    members,
)

SESSION_HEADERS = ("X-Service-Session-ID", "X-Alt-Session-ID")
"""The first of these headers in a request is the cache-affinity hint."""
IDEMPOTENCY_HEADER = "Idempotency-Key"

Json = dict[str, Any]

_SESSION = "Requests of one session go to the replica that has their prompts in its cache."
_HEADERS = {
    IDEMPOTENCY_HEADER: (
        "Printable characters that name this creation. Within 24 hours, a request with the same "
        "key and body has the same answer; another body is refused with 409. Where it is not "
        "required, a request without it always creates."
    ),
    SESSION_HEADERS[0]: _SESSION,
    SESSION_HEADERS[1]: f"{_SESSION} The first header that is sent counts.",
    VERSION_HEADER: "The version of Messages: `2023-06-01`, which is the default, or `2026-10-21`.",
    BETA_HEADER: "Flags with commas between them. Unknown ones are refused with 400.",
}
_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
_MARKS = (ORIGIN_MEMBER, QUESTIONS_MEMBER, PARTS_MEMBER)


def origin(operation: Operation) -> Json:
    """Return the mark of an operation as members of a JSON object."""
    if operation.origin is Origin.GIVEN:
        return members(GIVEN)
    return {ORIGIN_MEMBER: operation.origin.value, QUESTIONS_MEMBER: list(operation.questions)}


def path_parameters(operation: Operation) -> list[Json]:
    """Return one parameter for each name in braces. Too long IDs are unknown (OQ-124)."""
    schema = {"type": "string", "minLength": 1, "maxLength": PATH_ID_LENGTH_MAX}
    return [
        {
            "name": name,
            "in": "path",
            "description": SHARED[name],
            "required": True,
            "schema": schema,
            **origin(operation),
        }
        for name in _PATH_PARAMETER.findall(operation.path)
    ]


def query_parameters(operation: Operation) -> list[Json]:
    """Return one parameter for each field of the query's type."""
    if operation.query is None:
        return []
    schema = schemas.render([operation.query], [])[operation.query.__name__]
    return [
        _query_parameter(name, prop, is_required=name in schema.get("required", []))
        for name, prop in schema["properties"].items()
    ]


def header_parameters(operation: Operation) -> list[Json]:
    """Return the headers that the operation reads, without the credential."""
    headers: list[Json] = []
    if operation.creates_idempotently:
        headers.append(_idempotency_key(operation))
    if operation.takes_session:
        headers += _session_headers(operation)
    if operation is COUNT_TOKENS:
        version, beta = given(name=("OQ-67", "OQ-68")), given(name=("OQ-67", "OQ-69"))
        headers.append(_header(VERSION_HEADER, version, 0, None))
        headers.append(_header(BETA_HEADER, beta, 0, BETA_FLAGS_LENGTH_MAX))
    return headers


def _session_headers(operation: Operation) -> list[Json]:
    """Return the session headers. The specification gives both names for chat only."""
    if operation is CREATE_CHAT_COMPLETION:
        marks = (GIVEN, GIVEN)
    else:
        marks = (given(name="OQ-45"), adopted("OQ-45"))
    return [
        _header(name, mark, 1, SESSION_ID_LENGTH_MAX)
        for name, mark in zip(SESSION_HEADERS, marks, strict=True)
    ]


def _query_parameter(name: str, prop: Json, *, is_required: bool) -> Json:
    marks = {member: prop[member] for member in _MARKS if member in prop}
    own = (*marks, "description")
    schema = {member: value for member, value in prop.items() if member not in own}
    text = prop.get("description", "")
    if schema.get("type") == "array":
        text += f" Repeated, comma-separated, or as `{name}[]`."
    parameter = {"name": name, "in": "query", "description": text, "required": is_required}
    return {**parameter, "schema": schema, **marks}


def _idempotency_key(operation: Operation) -> Json:
    bounds = (IDEMPOTENCY_KEY_LENGTH_MIN, IDEMPOTENCY_KEY_LENGTH_MAX)
    header = _header(IDEMPOTENCY_HEADER, GIVEN, *bounds)
    return header | {"required": operation.demands_idempotency_key, **origin(operation)}


def _header(name: str, mark: msgspec.Meta, shortest: int, longest: int | None) -> Json:
    schema: Json = {"type": "string"}
    if shortest:
        schema["minLength"] = shortest
    if longest is not None:
        schema["maxLength"] = longest
    return {
        "name": name,
        "in": "header",
        "description": _HEADERS[name],
        "required": False,
        "schema": schema,
        **members(mark),
    }
