"""The examples of the document are what they are examples of."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from tollhouse.contract import (
    alerts,
    chat,
    decoding,
    message_request,
    messages,
    rate_limits,
    responses,
    spending_limits,
)
from tollhouse.contract.openapi import document
from tollhouse.contract.operation import Operation
from tollhouse.contract.operations import OPERATIONS

Json = dict[str, Any]
DOCUMENT = document()
CHECKS: dict[object, Callable[[Any], object]] = {
    alerts.SetAlertSubscription: alerts.check,
    chat.ChatRequest: chat.check,
    message_request.MessageRequest: message_request.check,
    messages.CountTokens: messages.check,
    rate_limits.SetRateLimit: rate_limits.check,
    responses.ResponseRequest: responses.check,
    spending_limits.SetSpendingLimit: spending_limits.check,
}
BODIES = [row for row in OPERATIONS if row.body is not None]


def rendered(row: Operation) -> Json:
    return DOCUMENT["paths"][row.path][row.method.lower()]


def content_of(holder: Json) -> Json:
    return holder["content"]["application/json"]


def examples() -> Iterator[Any]:
    """Every example beside its schema."""
    for row in OPERATIONS:
        operation = rendered(row)
        holders = [each for each in operation["parameters"] if each["required"]]
        if row.body is not None:
            holders.append(content_of(operation["requestBody"]))
        if row.result is not None:
            holders.append(content_of(operation["responses"]["200"]))
        yield from (pytest.param(each, id=f"{row.id}-{at}") for at, each in enumerate(holders))


@pytest.mark.parametrize("holder", list(examples()))
def test_an_example_fits_its_schema(holder: Json) -> None:
    schema = {**holder["schema"], "components": DOCUMENT["components"]}

    # Raises an error that names the member.
    Draft202012Validator(schema).validate(holder["example"])


@pytest.mark.parametrize("row", BODIES, ids=[row.id for row in BODIES])
def test_a_body_is_accepted_alone_and_with_all_defaults_of_its_type(row: Operation) -> None:
    assert row.body is not None
    body = content_of(rendered(row)["requestBody"])["example"]
    properties = DOCUMENT["components"]["schemas"][row.body.__name__]["properties"]
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}

    for sent in (body, defaults | body):
        CHECKS.get(row.body, lambda _: None)(decoding.decode(sent, row.body))
