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
        {"name": name, "in": "path", "required": True, "schema": schema, **origin(operation)}
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
    schema = {member: value for member, value in prop.items() if member not in marks}
    parameter: Json = {"name": name, "in": "query", "required": is_required, "schema": schema}
    if schema.get("type") == "array":
        parameter["description"] = f"Repeated, comma-separated, or as `{name}[]`."
    return {**parameter, **marks}


def _idempotency_key(operation: Operation) -> Json:
    bounds = (IDEMPOTENCY_KEY_LENGTH_MIN, IDEMPOTENCY_KEY_LENGTH_MAX)
    header = _header(IDEMPOTENCY_HEADER, GIVEN, *bounds)
    described = {"description": "Printable characters; reuse it only for an identical operation."}
    return header | described | {"required": True, **origin(operation)}


def _header(name: str, mark: msgspec.Meta, shortest: int, longest: int | None) -> Json:
    schema: Json = {"type": "string"}
    if shortest:
        schema["minLength"] = shortest
    if longest is not None:
        schema["maxLength"] = longest
    return {"name": name, "in": "header", "required": False, "schema": schema, **members(mark)}
