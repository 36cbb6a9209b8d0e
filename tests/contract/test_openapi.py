"""The published document: current, valid, and honest about where each part comes from."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tollhouse.contract.openapi import document
from tollhouse.contract.operation import Credential
from tollhouse.contract.operations import OPERATIONS

SOURCE = Path(__file__).parents[2] / "src"
DOCS = Path(__file__).parents[2] / "docs"
ORIGIN = "x-tollhouse-origin"
QUESTIONS = "x-tollhouse-questions"
PARTS = "x-tollhouse-adopted"

Json = dict[str, Any]


@pytest.fixture(scope="module")
def rendered() -> Json:
    return document()


def objects(node: object, path: str = "$") -> Iterator[tuple[str, Json]]:
    """Every object of the document, with its path."""
    if isinstance(node, dict):
        members = cast("Json", node)
        yield path, members
        for name, value in members.items():
            yield from objects(value, f"{path}.{name}")
    elif isinstance(node, list):
        for position, value in enumerate(cast("list[Any]", node)):
            yield from objects(value, f"{path}[{position}]")


def marked(rendered: Json) -> Iterator[tuple[str, Json]]:
    """All that must say where it comes from."""
    components = rendered["components"]
    for path, node in objects(rendered):
        for name, prop in node.get("properties", {}).items():
            yield f"{path}.properties.{name}", prop
        for parameter in node.get("parameters", []):
            yield f"{path}.parameters.{parameter['name']}", parameter
    for kind in ("securitySchemes", "schemas", "headers", "responses"):
        for name, node in components[kind].items():
            yield f"{kind}.{name}", node
    for path, item in rendered["paths"].items():
        for method, operation in item.items():
            yield f"{method} {path}", operation


def test_the_committed_document_is_the_rendering() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "tollhouse.contract.openapi"],
        check=True,
        capture_output=True,
        cwd=SOURCE,
    ).stdout

    assert (DOCS / "openapi.json").read_bytes() == printed, "run `make openapi`"
    assert printed.endswith(b"}\n")


def test_the_document_is_valid_openapi_3_1(rendered: Json) -> None:
    assert (rendered["openapi"], rendered["info"]["version"]) == ("3.1.0", "0.2.0")
    assert list(OpenAPIV31SpecValidator(rendered).iter_errors()) == []  # pyright: ignore[reportArgumentType]


def test_every_part_carries_its_origin(rendered: Json) -> None:
    origins = {path: node.get(ORIGIN) for path, node in marked(rendered)}

    assert {path for path, origin in origins.items() if origin is None} == set()
    assert set(origins.values()) == {"given", "adopted", "extension"}


def test_what_is_not_given_names_its_question_and_what_is_given_names_none(
    rendered: Json,
) -> None:
    register = (DOCS / "open-questions.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| (OQ-\d+) ", register, re.MULTILINE))

    for path, node in objects(rendered):
        if ORIGIN in node:
            questions = set(node.get(QUESTIONS, []))
            assert bool(questions) is (node[ORIGIN] != "given"), path
            parts = {question for part in node.get(PARTS, {}).values() for question in part}
            assert questions | parts <= known, path


def reachable(rendered: Json, node: object) -> Iterator[tuple[str, Json]]:
    """Every object that a part of the document leads to, through references too."""
    waiting, seen = [node], set[str]()
    while waiting:
        for path, found in objects(waiting.pop()):
            yield path, found
            reference = str(found.get("$ref", ""))
            if reference and reference not in seen:
                seen.add(reference)
                _, _, kind, name = reference.split("/")
                waiting.append(rendered["components"][kind][name])


OURS_UNDER_V1 = {
    "/v1/organization/costs": [
        "$.properties.unsettled",
        *("$", *(f"$.properties.{name}" for name in ("start_time", "requests", "amount"))),
    ]
}


def test_no_other_body_under_v1_has_anything_of_the_extension(rendered: Json) -> None:
    for path, item in rendered["paths"].items():
        if path.startswith("/v1/"):
            for method, operation in item.items():
                success = operation["responses"]["200"]["content"]
                bodies = [operation.get("requestBody", {}), success]
                found = [place for place, node in reachable(rendered, bodies) if is_ours(node)]
                assert found == OURS_UNDER_V1.get(path, []), f"{method} {path}"


def is_ours(node: Json) -> bool:
    return node.get(ORIGIN) == "extension"


def given_failures(rendered: Json, method: str, path: str) -> set[str]:
    responses = rendered["components"]["responses"]
    return {
        status
        for status, answer in rendered["paths"][path][method]["responses"].items()
        if "$ref" in answer and responses[answer["$ref"].rpartition("/")[2]][ORIGIN] == "given"
    }


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        (
            "post",
            "/v1/chat/completions",
            "400 401 402 403 404 409 413 415 422 429 500 501 502 503 504",
        ),
        ("post", "/v1/responses", "401 403 415"),
        ("post", "/v1/messages/count_tokens", "401 403 415"),
        ("get", "/v1/models/{model}", "401 403"),
        ("get", "/v1/models", ""),
        ("post", "/v1/organization/policies", "401 403 415"),
        ("patch", "/v1/organization/policies/{policy_id}", "401 403 409 415"),
        ("post", "/v1/organization/policies/{policy_id}/pause", "401 403 409 415"),
        ("get", "/v1/organization/costs", "401 403"),
        ("post", "/manage/v1/organization/projects", ""),
    ],
)
def test_only_failures_that_the_specification_names_are_given(
    rendered: Json, method: str, path: str, statuses: str
) -> None:
    assert given_failures(rendered, method, path) == set(statuses.split())


def test_the_tags_are_those_of_the_specification_and_ours(rendered: Json) -> None:
    tags = {tag["name"]: tag[ORIGIN] for tag in rendered["tags"]}

    given = {name for name, origin in tags.items() if origin == "given"}
    assert given == {
        *("Models", "Inference", "Credits", "Organization", "Projects"),
        *("Project keys", "Admin keys", "Spending limits", "Reports", "Policies"),
    }
    assert set(tags) - given == {"Alerts", "Messages", "Rate limits", "Requests"}


def test_every_tag_has_operations_and_every_component_is_used(rendered: Json) -> None:
    used = {
        tag for item in rendered["paths"].values() for row in item.values() for tag in row["tags"]
    }
    referred = {
        str(node["$ref"]) for _, node in reachable(rendered, rendered["paths"]) if "$ref" in node
    }

    assert {tag["name"] for tag in rendered["tags"]} == used
    assert referred == {
        f"#/components/{kind}/{name}"
        for kind in ("headers", "responses", "schemas")
        for name in rendered["components"][kind]
    }


def test_no_default_of_an_exclusive_field_is_sent_by_generated_clients(rendered: Json) -> None:
    schemas = rendered["components"]["schemas"]
    fields = {
        (name, field): schema["properties"][field]
        for name, schema in schemas.items()
        for field in schema.get("x-tollhouse-exclusive", [])
    }

    assert {key for key, prop in fields.items() if "default" in prop} == set()
    assert {key for key, prop in fields.items() if prop.get("x-tollhouse-default") == 1024} == {
        ("ChatRequest", "max_tokens"),
        ("ChatRequest", "max_completion_tokens"),
        ("ResponseRequest", "max_output_tokens"),
    }


def test_a_security_scheme_says_which_part_of_it_is_given(rendered: Json) -> None:
    schemes = rendered["components"]["securitySchemes"]

    assert {name: scheme.get(PARTS) for name, scheme in schemes.items()} == {
        "customerKey": None,
        "customerHeaderKey": {"name": ["OQ-83"]},
        "adminKey": {"schemeName": ["OQ-200"]},
    }
    assert {scheme[ORIGIN] for scheme in schemes.values()} == {"given"}


def test_every_operation_is_published_once_with_its_permission(rendered: Json) -> None:
    published = {
        (method.upper(), path): operation
        for path, item in rendered["paths"].items()
        for method, operation in item.items()
    }

    assert set(published) == {(row.method, row.path) for row in OPERATIONS}
    for row in OPERATIONS:
        operation = published[row.method, row.path]
        roles = [row.access.permission.value]
        if row.access.credential is Credential.ADMIN:
            assert operation["security"] == [{"adminKey": roles}]
        else:
            assert operation["security"] == [{"customerKey": roles}, {"customerHeaderKey": roles}]
        statuses = {"200", "default"} | {str(status) for status in row.statuses}
        assert set(operation["responses"]) == statuses


def test_every_answer_carries_the_request_id(rendered: Json) -> None:
    reference = {"$ref": "#/components/headers/X-Request-ID"}

    for item in rendered["paths"].values():
        for operation in item.values():
            assert operation["responses"]["200"]["headers"]["X-Request-ID"] == reference
    for failure in rendered["components"]["responses"].values():
        assert failure["headers"]["X-Request-ID"] == reference


def headers_of(rendered: Json, method: str, path: str) -> dict[str, Json]:
    parameters = rendered["paths"][path][method]["parameters"]
    return {parameter["name"]: parameter for parameter in parameters if parameter["in"] == "header"}


def test_creations_demand_an_idempotency_key(rendered: Json) -> None:
    header = headers_of(rendered, "post", "/v1/organization/policies")["Idempotency-Key"]

    assert header["required"] is True
    assert header["schema"] == {"type": "string", "minLength": 8, "maxLength": 200}


def test_inference_routes_take_both_session_headers(rendered: Json) -> None:
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages/count_tokens"):
        for name in ("X-Service-Session-ID", "X-Alt-Session-ID"):
            header = headers_of(rendered, "post", path)[name]
            assert header["required"] is False
            assert header["schema"] == {"type": "string", "minLength": 1, "maxLength": 512}


def test_token_counting_takes_the_headers_of_messages(rendered: Json) -> None:
    headers = headers_of(rendered, "post", "/v1/messages/count_tokens")

    assert headers["anthropic-version"][PARTS] == {"name": ["OQ-67", "OQ-68"]}
    assert headers["anthropic-beta"]["schema"]["maxLength"] == 512


def test_generation_can_be_streamed(rendered: Json) -> None:
    streaming = {
        path
        for path, item in rendered["paths"].items()
        for operation in item.values()
        if "text/event-stream" in operation["responses"]["200"]["content"]
    }

    assert streaming == {
        "/v1/chat/completions",
        "/v1/responses",
        "/compat/anthropic/v1/messages",
    }


def test_a_result_requires_all_that_is_never_left_out(rendered: Json) -> None:
    schemas = rendered["components"]["schemas"]

    optional = set(schemas["ProjectKey"]["properties"]) - set(schemas["ProjectKey"]["required"])
    assert optional == {"value"}
    assert schemas["ProjectKey"][PARTS] == {"required": ["OQ-199"]}
    assert schemas["AdminKeyDeleted"]["required"] == ["id", "object", "deleted"]


def test_a_result_whose_required_fields_are_given_requires_no_others(rendered: Json) -> None:
    schemas = rendered["components"]["schemas"]

    assert schemas["ErrorBody"]["required"] == ["code", "message", "type"]
    assert schemas["Choice"]["required"] == ["index", "message"]
    assert PARTS not in schemas["Choice"]


def test_a_request_refuses_further_members(rendered: Json) -> None:
    for row in OPERATIONS:
        if row.body is not None:
            schema = rendered["components"]["schemas"][row.body.__name__]
            assert schema["additionalProperties"] is False, row.id


def test_patterns_are_in_the_dialect_of_json_schema(rendered: Json) -> None:
    patterns = [node["pattern"] for _, node in objects(rendered) if "pattern" in node]

    assert patterns
    assert [pattern for pattern in patterns if r"\A" in pattern or r"\Z" in pattern] == []
