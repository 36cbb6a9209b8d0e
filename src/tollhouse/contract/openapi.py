"""Renders the OpenAPI document from the operations and the wire types.

`python -m tollhouse.contract.openapi` prints it; docs/openapi.json is that output.
"""

import sys
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

from tollhouse.contract import descriptions, examples, message_result, response_events, schemas
from tollhouse.contract.compat_operations import CREATE_MESSAGE
from tollhouse.contract.completions import ChatChunk
from tollhouse.contract.costs import UNSETTLED_HEADER
from tollhouse.contract.errors import Envelope, ErrorShape, MessagesEnvelope
from tollhouse.contract.messages import ESTIMATED_HEADER, TokenCount
from tollhouse.contract.operation import Credential, Operation
from tollhouse.contract.operations import (
    COUNT_TOKENS,
    CREATE_CHAT_COMPLETION,
    EDIT_POLICY,
    MODULES,
    OPERATIONS,
    PAUSE_POLICY,
    REPORT_COSTS,
    routes_of,
)
from tollhouse.contract.origins import (
    GIVEN,
    PARTS_MEMBER,
    Origin,
    adopted,
    extension,
    given,
    members,
)
from tollhouse.contract.parameters import (
    header_parameters,
    origin,
    path_parameters,
    query_parameters,
)
from tollhouse.contract.policies import SELECTING_HEADER
from tollhouse.contract.report_operations import EXPORT_COSTS, REPORT_COMPLETIONS, REPORT_USAGE

SPECIFICATION_VERSION = "0.2.0"
TAGS = {
    "Models": (GIVEN, "What can be called, and at which price."),
    "Inference": (GIVEN, "Calls of models in OpenAI's form, and counting."),
    "Messages": (adopted("OQ-219"), "Calls of models in Anthropic's form."),
    "Credits": (GIVEN, "The prepaid credit of the organization."),
    "Organization": (GIVEN, "The organization of an Admin key, and its audit log."),
    "Projects": (GIVEN, "Groups of keys with costs, limits and policies of their own."),
    "Project keys": (GIVEN, "The keys with which models are called."),
    "Admin keys": (GIVEN, "The keys with which the organization is administered."),
    "Spending limits": (GIVEN, "Caps on money, for each day, week, month or for good."),
    "Rate limits": (extension("OQ-139"), "Limits of traffic."),
    "Reports": (GIVEN, "Costs and usage."),
    "Requests": (extension("OQ-173"), "What became of each request."),
    "Alerts": (extension("OQ-143"), "Events, and whom they are told."),
    "Policies": (GIVEN, "Questions that a judge answers about requests and answers."),
}

Json = dict[str, Any]

_ENVELOPES: dict[ErrorShape, type[Struct]] = {
    ErrorShape.OPENAI: Envelope,
    ErrorShape.MESSAGES: MessagesEnvelope,
}
_RESPONSE_NAMES = {ErrorShape.OPENAI: "Failure", ErrorShape.MESSAGES: "MessagesFailure"}
_MEANINGS = {
    400: "Request validation failed",
    401: "Missing or invalid credential",
    402: "Available credit or spending cap cannot cover admission",
    403: "Credential scope or policy denied the operation",
    404: "Resource or model not found in the caller's organization",
    409: "Revision, state or idempotency conflict",
    413: "JSON body exceeds the gateway size limit",
    415: "Body is not application/json",
    422: "Provider request validation failed",
    429: "Request rate or concurrency exceeded",
    500: "Unexpected gateway failure",
    501: "The backend does not implement the option",
    502: "Backend request failed",
    503: "A required service or configuration is unavailable",
    504: "Inference deadline exceeded",
}
_GIVEN_FOR_ALL = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
"""The statuses that the specification gives for every operation."""
_OTHER_FAILURES = "Any other failure, such as 405, 408 or 431"


def document() -> Json:
    """Return the OpenAPI document. Every part that is not in the specification is marked."""
    rendered: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "Tollhouse",
            "version": SPECIFICATION_VERSION,
            "description": (
                "Inference gateway and organization administration. Every operation, parameter, "
                "schema and property carries its origin: given (in the specification), adopted "
                "(a public convention) or extension (ours). What of a given part is not in the "
                f"specification, such as a null or a default, stands in {PARTS_MEMBER}. The "
                "numbers are rows of the register of open questions, which the gateway serves: "
                "OQ-59 is /docs/open-questions/#oq-59. Of the properties in "
                f"{schemas.EXCLUSIVE_MEMBER} a request has at most one, so that their defaults "
                f"stand in {schemas.DEFAULT_MEMBER}, which clients do not send by themselves."
            ),
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The gateway that serves this document."}],
        "tags": [
            {"name": name, "description": text, **members(mark)}
            for name, (mark, text) in TAGS.items()
        ],
        "paths": _paths(),
        "components": {
            "securitySchemes": _security_schemes(),
            "headers": _headers(),
            "responses": _failures(),
            "schemas": _schemas(),
        },
    }
    examples.add(rendered)
    return rendered


def _paths() -> Json:
    paths: Json = {}
    meanings = descriptions.of_operations(MODULES)
    for operation in OPERATIONS:
        rendered = _operation(operation, meanings.get(operation.id, ""))
        paths.setdefault(operation.path, {})[operation.method.lower()] = rendered
    return paths


def _operation(operation: Operation, meaning: str) -> Json:
    parameters = [
        *path_parameters(operation),
        *query_parameters(operation),
        *header_parameters(operation),
    ]
    rendered: Json = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": f"{meaning}{_other_routes(operation)}",
        **_operation_mark(operation),
        "security": _security(operation),
        "parameters": parameters,
    }
    if operation.body is not None:
        content = {"application/json": {"schema": schemas.reference(operation.body)}}
        rendered["requestBody"] = {"required": True, "content": content}
    rendered["responses"] = _responses(operation)
    return rendered


def _other_routes(operation: Operation) -> str:
    _, *others = (f"`{method} {path}`" for method, path in routes_of(operation))
    return f" Also served at {', '.join(others)}." if others else ""


def _operation_mark(operation: Operation) -> Json:
    """Return the mark of an operation. Only for chat all statuses and schemes are given."""
    if operation.origin is not Origin.GIVEN or operation is CREATE_CHAT_COMPLETION:
        return origin(operation)
    if operation.access.credential is Credential.ADMIN:
        return members(given(responses="OQ-03"))
    return members(given(responses="OQ-03", security="OQ-83"))


def _security(operation: Operation) -> list[Json]:
    roles = [operation.access.permission.value]
    if operation.access.credential is Credential.ADMIN:
        return [{"adminKey": roles}]
    return [{"customerKey": roles}, {"customerHeaderKey": roles}]


def _security_schemes() -> Json:
    return {
        "customerKey": {"type": "http", "scheme": "bearer", **members(GIVEN)},
        "customerHeaderKey": {
            "type": "apiKey",
            "in": "header",
            "name": "x-api-key",
            **members(given(name="OQ-83")),
        },
        "adminKey": {"type": "http", "scheme": "bearer", **members(given(schemeName="OQ-200"))},
    }


def _headers() -> Json:
    text = {"type": "string"}
    return {
        "X-Request-ID": {
            "description": "The gateway's request ID: given for chat, sent by all operations.",
            "required": True,
            "schema": {"type": "string", "format": "uuid"},
            **members(given(operations="OQ-11")),
        },
        "request-id": {
            "description": "The request ID, where Messages clients look for it.",
            "schema": text,
            **members(adopted("OQ-73")),
        },
        "Idempotent-Replayed": {
            "description": "`true` when an earlier creation is answered again.",
            "schema": text,
            **members(adopted("OQ-100")),
        },
        ESTIMATED_HEADER: {
            "description": "`true` if the count is an estimate; else the header is missing.",
            "schema": text,
            **members(extension("OQ-75")),
        },
        SELECTING_HEADER: {
            "description": (
                "How many of the latest requests selected the policy by `policy_ids`. From now on "
                "such requests skip it."
            ),
            "required": True,
            "schema": {"type": "integer", "format": "int64", "minimum": 0},
            **members(extension("OQ-46")),
        },
        UNSETTLED_HEADER: {
            "description": "Unsettled requests of the range; like those under way, in no amount.",
            "required": True,
            "schema": {"type": "integer", "format": "int64", "minimum": 0},
            **members(extension("OQ-133")),
        },
    }


def _header_references(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _responses(operation: Operation) -> Json:
    names = ["X-Request-ID"]
    if operation.creates_idempotently:
        names.append("Idempotent-Replayed")
    if operation is COUNT_TOKENS:
        names.append("request-id")
    if operation.result is TokenCount:
        names.append(ESTIMATED_HEADER)
    if operation is PAUSE_POLICY:
        names.append(SELECTING_HEADER)
    if operation in (REPORT_COSTS, REPORT_USAGE, REPORT_COMPLETIONS, EXPORT_COSTS):
        names.append(UNSETTLED_HEADER)
    success = {
        "description": "Success",
        **_success_mark(operation),
        "headers": _header_references(*names),
        "content": _content(operation),
    }
    failures = {
        str(status): {"$ref": f"#/components/responses/{_failure_name(operation, status)}"}
        for status in operation.statuses
    }
    others = {"$ref": f"#/components/responses/{_RESPONSE_NAMES[operation.error_shape]}"}
    return {str(HTTPStatus.OK.value): success, **failures, "default": others}


def _success_mark(operation: Operation) -> Json:
    """Return the mark of a success. The status 200 is given for two operations only."""
    if operation.origin is not Origin.GIVEN or operation in (CREATE_CHAT_COMPLETION, COUNT_TOKENS):
        return origin(operation)
    return members(given(status="OQ-94" if operation.creates_idempotently else "OQ-03"))


def _is_given(operation: Operation, status: int) -> bool:
    """Return whether the specification gives this status for the operation."""
    if operation.origin is not Origin.GIVEN:
        return False
    if operation is CREATE_CHAT_COMPLETION or status in _GIVEN_FOR_ALL:
        return True
    if status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        return operation.body is not None
    return status == HTTPStatus.CONFLICT and operation in (EDIT_POLICY, PAUSE_POLICY)


def _failure_name(operation: Operation, status: int) -> str:
    prefix = "Given" if _is_given(operation, status) else ""
    return f"{prefix}{_RESPONSE_NAMES[operation.error_shape]}{status}"


def _content(operation: Operation) -> Json:
    if operation.result is None:
        return {"text/csv": {"schema": {"type": "string", **origin(operation)}}}
    content: Json = {"application/json": {"schema": schemas.reference(operation.result)}}
    if operation.streams:
        content["text/event-stream"] = {"schema": _stream(operation)}
    return content


def _stream(operation: Operation) -> Json:
    """Return the schema of a stream of events. Its content is the list of their data."""
    if operation is CREATE_CHAT_COMPLETION:
        event = schemas.reference(ChatChunk)
    else:
        module = message_result if operation is CREATE_MESSAGE else response_events
        event = {"oneOf": [schemas.reference(each) for each in module.EVENTS]}
    return {
        "type": "string",
        "contentMediaType": "text/event-stream",
        "contentSchema": {"type": "array", "items": event},
        **members(adopted("OQ-27")),
    }


def _failures() -> Json:
    """Return the failures that operations refer to, and one of each form for any other status."""
    found = {
        _failure_name(row, status): _failure(
            row.error_shape, _MEANINGS[status], is_given=_is_given(row, status)
        )
        for row in OPERATIONS
        for status in row.statuses
    }
    others = {
        name: _failure(shape, _OTHER_FAILURES, is_given=False)
        for shape, name in _RESPONSE_NAMES.items()
    }
    return dict(sorted((found | others).items()))


def _failure(shape: ErrorShape, meaning: str, *, is_given: bool) -> Json:
    return {
        "description": meaning,
        **members(GIVEN if is_given else adopted("OQ-03")),
        "headers": _header_references("X-Request-ID"),
        "content": {"application/json": {"schema": schemas.reference(_ENVELOPES[shape])}},
    }


def _schemas() -> Json:
    requests = [row.body for row in OPERATIONS if row.body is not None]
    results = [row.result for row in OPERATIONS if row.result is not None]
    events = [*response_events.EVENTS, *message_result.EVENTS]
    return schemas.render(requests, [*results, ChatChunk, *events, Envelope, MessagesEnvelope])


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document()), indent=2) + b"\n")
