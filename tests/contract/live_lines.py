"""What a server answers to the cases of a line, and what its answers hold."""

import secrets
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import UUID

import httpx2
import msgspec

from tests.contract.cases import ACCEPTED, STEPS, Table, row_cases
from tests.contract.document_lines import PARTS, Json, parameters_of, schema_of
from tests.contract.kinds import ANY, ANYTHING, ONLY_FALSE, Kind, Row
from tests.contract.tables import (
    FORMAT,
    MESSAGE,
    PROJECT,
    RULE,
    Parameters,
    Resource,
    resource_of,
)

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
COUNTING = "/v1/messages/count_tokens"
POLICIES = "/v1/organization/policies"
POLICY = f"{POLICIES}/{{policy_id}}"
BETA_FLAG = "token-counting-2024-11-01"
SERVED = {200, 404, 409, 501}
"""A sound value may still name something unknown, a stale revision, or what no backend has."""
PYTHON_TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}

Case = tuple[str, Any, tuple[str, str | None]]


@dataclass(frozen=True, kw_only=True)
class Body:
    """Where an object of the tables stands in a request."""

    method: str = "POST"
    path: str
    body: Json
    at: tuple[str | int, ...] = ()


def _chat(at: tuple[str | int, ...] = (), **fields: object) -> Body:
    return Body(path=CHAT, body={"model": "MODEL", "messages": [MESSAGE], **fields}, at=at)


BODIES = {
    "ChatRequest": _chat(),
    "ChatMessage": _chat(("messages", 0)),
    "ChatMessage.content": _chat(
        ("messages", 0, "content", 0),
        messages=[{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    ),
    "StreamOptions": _chat(("stream_options",), stream=True, stream_options={}),
    "Reasoning": _chat(("reasoning",), reasoning={}),
    "TextFormat": _chat(("response_format",), response_format={"type": "text"}),
    "JsonObjectFormat": _chat(("response_format",), response_format={"type": "json_object"}),
    "JsonSchemaFormat": _chat(("response_format",), response_format=FORMAT),
    "JsonSchema": _chat(("response_format", "json_schema"), response_format=FORMAT),
    "ResponseRequest": Body(path=RESPONSES, body={"model": "MODEL", "input": "Hello"}),
    "CountTokens": Body(path=COUNTING, body={"model": "MODEL", "messages": [MESSAGE]}),
    "CreatePolicy": Body(path=POLICIES, body={"name": "No names", "rule": RULE}),
    "EditPolicy": Body(method="PATCH", path=POLICY, body={"revision": 7}),
    "PausePolicy": Body(path=f"{POLICY}/pause", body={"revision": 7}),
    "CreateProjectKey": Body(
        path="/v1/organization/projects/{project_id}/api_keys", body={"name": "ci"}
    ),
}


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server, what exists there, and every answer of it by the name of its schema."""

    document: Json
    customer: httpx2.AsyncClient
    administrator: httpx2.AsyncClient
    ids: dict[str, str]
    seen: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
        ids: dict[str, str] | None = None,
    ) -> httpx2.Response:
        """Send a request with the key that its route wants."""
        is_organization = "/organization/" in path
        client = self.administrator if is_organization else self.customer
        sent = {"Idempotency-Key": secrets.token_hex(8)} if is_organization else {}
        sent |= headers or {}
        url = path.format(**(self.ids | (ids or {})))
        answer = await client.request(method, url, json=body, headers=sent)
        assert answer.status_code != 500, answer.text
        assert str(UUID(answer.headers["x-request-id"])) == answer.headers["x-request-id"]
        return answer

    def keep(self, schema: str, body: Json) -> None:
        """Keep an answer, and each object in it, for the lines of their tables."""
        self.seen[schema].append(body)
        for line in resource_of(schema).rows:
            if body.get(line.name) is None:
                continue
            for kind in line.kinds:
                if kind.table:
                    self.keep(kind.table, body[line.name])
                for item in body[line.name] if kind.of and kind.of[0].table else ():
                    self.keep(kind.of[0].table, item)


async def check_body(server: Server, resource: Resource, line: Row | None) -> None:
    """Send every case of a line; without a line, a member that no table has."""
    place = BODIES[resource.schema]
    table = Table(type_=msgspec.Struct, body=_with_ids(server, place.body), at=place.at)
    for name, body, outcome in _body_cases(server, resource, table, line):
        answer = await server.ask(place.method, place.path, body)
        if outcome == ACCEPTED:
            assert answer.status_code in SERVED, (name, answer.text)
        else:
            error = answer.json()["error"]
            told = answer.status_code, error["code"], error["param"]
            assert told == (400, *outcome), (name, answer.text)
    for body, param, is_sound in _item_cases(table, line):
        answer = await server.ask(place.method, place.path, body)
        if is_sound:
            assert answer.status_code in SERVED, answer.text
        else:
            assert answer.status_code == 400, (body, answer.text)
            assert answer.json()["error"]["param"].startswith(param)


def _body_cases(
    server: Server, resource: Resource, table: Table, line: Row | None
) -> Iterator[Case]:
    if line is None:
        # A content part may have further members; all other objects refuse them (OQ-198).
        is_open = schema_of(server.document, resource).get("additionalProperties") is not False
        refused = ("unknown_parameter", table.param("zz_unknown"))
        yield "unknown", table.with_field("zz_unknown", 1), ACCEPTED if is_open else refused
        return
    parts = schema_of(server.document, resource)["properties"][line.name].get(PARTS, {})
    accompanied = replace(table, body=line.beside | table.body if not table.at else table.body)
    for name, body, outcome in row_cases(
        accompanied, replace(line, null=line.null or "null" in parts)
    ):
        is_of_type = not name.endswith("-absent")
        if not (is_of_type and line.kinds == (ANYTHING,)):
            yield name, _with_ids(server, body), outcome
    if ONLY_FALSE in line.kinds:
        refused = ("unsupported_value", table.param(line.name))
        yield "true", table.with_field(line.name, value=True), refused


def _item_cases(table: Table, line: Row | None) -> Iterator[tuple[Json, str, bool]]:
    """One item of a list, or one member of a map, at and beyond each bound of its kind."""
    for kind in () if line is None else line.kinds:
        for of in kind.of:
            for item, is_sound in _items_at_bounds(of):
                value = [item] if kind.json_type == "array" else {"50256": item}
                assert line is not None
                yield table.with_field(line.name, value), table.param(line.name), is_sound


def _items_at_bounds(kind: Kind) -> Iterator[tuple[Any, bool]]:
    for side, bound in ((-1, kind.low), (1, kind.high)):
        if bound is not None:
            yield kind.sized(bound), True
            yield kind.sized(bound + side * STEPS[kind.json_type]), False
    yield from ((value, True) for value in kind.values)
    if kind.values:
        yield f"{kind.values[0]}x", False


def _with_ids(server: Server, body: Json) -> Json:
    """The same body with names that exist; a name that is itself tried stays."""
    made = deepcopy(body)
    if made.get("model") == "MODEL":
        made["model"] = server.ids["model"]
    projects = made.get("project_ids")
    if isinstance(projects, list) and PROJECT in projects:
        made["project_ids"] = [server.ids["project_id"]] * len(cast("list[Any]", projects))
    return made


async def check_parameter(server: Server, table: Parameters, line: Row) -> None:
    """Send values at and beyond each bound in the place of the parameter.

    The one header of answers is looked at in every answer.
    """
    if table.place == "answer":
        return
    for value, is_sound in _parameter_cases(server, table, line):
        answer = await _ask_with(server, table, line.name, value)
        if table.place == "path":
            # An ID that is too long is unknown (OQ-124).
            assert answer.status_code == 404, answer.text
        elif is_sound:
            assert not _refuses_form(answer), (value, answer.text)
        else:
            assert answer.status_code == 400, (value, answer.text)


def _parameter_cases(
    server: Server, table: Parameters, line: Row
) -> Iterator[tuple[str | None, bool]]:
    if table.place != "path" and parameters_of(server.document, table)[line.name]["required"]:
        yield None, False
    for kind in line.kinds:
        for side, bound in ((-1, kind.low), (1, kind.high)):
            is_countable = kind.json_type != "array" or not kind.of[0].values
            if bound is not None and is_countable:
                yield _text(line, kind, int(bound)), True
                yield _text(line, kind, int(bound + side * STEPS[kind.json_type])), False
        values = kind.of[0].values if kind.of else ()
        yield from ((value, True) for value in values)
        if values:
            yield f"{values[0]}x", False


def _text(line: Row, kind: Kind, size: int) -> str:
    """A text of so many characters, a list of so many IDs, or the number itself."""
    if line.name == "anthropic-beta":
        return f"{BETA_FLAG},{BETA_FLAG:>{size - len(BETA_FLAG) - 1}}"
    if kind.json_type == "array":
        return ",".join(f"{number:08x}{PROJECT[8:]}" for number in range(size))
    return "k" * size if kind.json_type == "string" else str(size)


async def _ask_with(
    server: Server, table: Parameters, name: str, value: str | None
) -> httpx2.Response:
    """Send nothing in place of a value that is left out, which for a header is an empty one."""
    place = next((each for each in BODIES.values() if _is_body_of(each, table)), None)
    body = None if place is None else _with_ids(server, place.body)
    if table.place == "header":
        return await server.ask(table.method, table.path, body, headers={name: value or ""})
    sent = {} if value is None else {name: value}
    if table.place == "path":
        return await server.ask(table.method, table.path, body, ids=sent)
    if "costs" in table.path and name != "start_time":
        sent["start_time"] = "0"
    query = "&".join(f"{key}={text}" for key, text in sent.items())
    return await server.ask(table.method, f"{table.path}?{query}")


def _is_body_of(place: Body, table: Parameters) -> bool:
    asked = (table.method.upper(), table.path, ())
    return (place.method, place.path, place.at) == asked


def _refuses_form(answer: httpx2.Response) -> bool:
    """A sound cursor or range may be refused for what it says; its form may not."""
    if answer.status_code != 400:
        return False
    code = answer.json()["error"]["code"]
    return code == "invalid_type" or "_min_" in code or "_max_" in code


def check_answers(server: Server, resource: Resource, line: Row | None) -> int:
    """Look at one field of every answer of the kind; return how many had a value there."""
    schema = schema_of(server.document, resource)
    answers = server.seen[resource.schema]
    assert answers
    if line is None:
        members = set[str]().union(*answers)
        assert members <= set(schema["properties"])
        return len(answers)
    parts = schema["properties"][line.name].get(PARTS, {})
    found = 0
    for answer in answers:
        if line.name not in answer:
            assert not line.required
            assert line.name not in schema["required"]
        elif answer[line.name] is None:
            assert line.null or "null" in parts
        else:
            assert any(fits(kind, answer[line.name], parts) for kind in line.kinds), answer
            found += 1
    return found


def fits(kind: Kind, value: Any, parts: Json) -> bool:  # noqa: ANN401 - JSON
    """Whether a value is of the kind; a list of values that is open may have others."""
    if kind.json_type == ANY:
        return True
    is_listed = not kind.values or value in kind.values or "enum" in parts
    return (
        isinstance(value, bool) is (kind.json_type == "boolean")
        and isinstance(value, PYTHON_TYPES[kind.json_type])
        and is_listed
        and _is_bounded(kind, value)
        and _is_formed(kind, value)
        and all(_item_fits(kind, item) for item in _items(value))
    )


def _is_bounded(kind: Kind, value: Any) -> bool:  # noqa: ANN401 - JSON
    if kind.low is None and kind.high is None:
        return True
    size: float = len(value) if kind.json_type in {"string", "array"} else value
    return (kind.low is None or kind.low <= size) and (kind.high is None or size <= kind.high)


def _is_formed(kind: Kind, value: Any) -> bool:  # noqa: ANN401 - JSON
    if kind.json_type != "string":
        return True
    return str(value).endswith(kind.ending) and (kind.format != "uuid" or str(UUID(value)) == value)


def _items(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return list(cast("Json", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def _item_fits(kind: Kind, item: Any) -> bool:  # noqa: ANN401 - JSON
    """Objects with a table of their own are looked at by its lines."""
    if not kind.of or (item is None and kind.takes_null_items):
        return True
    return any(each.table or fits(each, item, {}) for each in kind.of)
