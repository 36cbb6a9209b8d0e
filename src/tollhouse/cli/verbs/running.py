"""Runs the command of an operation: what the user gave becomes a call, and its answer is shown."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from tollhouse.cli import output
from tollhouse.cli.verbs import advice, following, gateways, pages, references, shown
from tollhouse.cli.verbs.gateway import Gateway, OperationRequest
from tollhouse.cli.verbs.values import (
    PAGING,
    REFERENCES,
    Days,
    Field,
    fields_of,
    path_fields,
    words_of,
)
from tollhouse.contract.operation import AnyOperation
from tollhouse.contract.policy_operations import RETRIEVE_MANAGED_POLICY

REPLAYED: Final = (
    "The same command line created this before, and nothing was created now. To create another "
    "one, add --again."
)

Values = Mapping[str, Any]


def run(operation: AnyOperation, context: click.Context, /, **values: Any) -> None:  # noqa: ANN401 - of options
    """Ask, call the operation, and show the answer."""
    if context.invoked_subcommand is not None:
        return
    spec = operation.command
    assert spec is not None, "only operations with a command are offered"
    as_json: bool = values["as_json"]
    if spec.question:
        subject = values[spec.arguments.split()[-1]]
        output.confirm(spec.question.format(subject), yes=values["yes"], as_json=as_json)
    settings_path: Path = context.obj
    gateway = gateways.chosen(
        operation,
        settings_path,
        profile=values.get("profile"),
        organization=values.get("organization") or values.get("organization_id"),
    )
    with gateway:
        request = _request_of(gateway, operation, values)
        if operation.result is None:
            _write(gateway, operation, request, values)
            return
        if values.get("follow"):
            following.follow(gateway, request, shown_max=values["shown_max"], as_json=as_json)
            return
        body, headers = pages.answer(
            gateway,
            operation,
            request,
            shown_max=values.get("shown_max", 0),
            after=values.get("after"),
        )
        sentences = [] if as_json else advice.sentences(gateway, operation, body, headers)
    shown.show(operation, body, as_json=as_json)
    if "idempotent-replayed" in headers:
        output.note(REPLAYED)
    for sentence in sentences:
        click.echo(sentence)


def _request_of(gateway: Gateway, operation: AnyOperation, values: Values) -> OperationRequest:
    """Return the call: names become IDs, and what the user left out is found."""
    path = _path(gateway, operation, path_fields(operation), values)
    query = _given(gateway, fields_of(operation.query), values, operation)
    body = _given(gateway, fields_of(operation.body), values, operation)
    for name in values.get("cleared", ()):
        field = _named(operation, name)
        body[field.path[0]] = field.cleared
    sent = () if operation.body is None else operation.body.__struct_fields__
    if "revision" in sent and "revision" not in body:
        found, _ = gateway.call(RETRIEVE_MANAGED_POLICY, OperationRequest(path=path))
        body["revision"] = found["revision"]
    return OperationRequest(
        path=path,
        query={name: value for name, value in query.items() if name not in PAGING},
        body=body if operation.body is not None else None,
        idempotency_key=_idempotency_key(gateway, operation, path, body, values),
    )


def _path(
    gateway: Gateway, operation: AnyOperation, fields: list[Field], values: Values
) -> dict[str, str]:
    path: dict[str, str] = {}
    for field in fields:
        name, value = field.variable, values[field.variable]
        if value is None:
            continue
        if name == "api_key_id" and "admin_api_keys" not in operation.path:
            path["project_id"], path[name] = references.key_of(
                gateway, value, path.get("project_id")
            )
        else:
            path[name] = _resolved(gateway, operation, name, str(value))
    return path


def _resolved(gateway: Gateway, operation: AnyOperation, name: str, value: Any) -> Any:  # noqa: ANN401 - of any option
    """Return the ID where a field names an object, and other values as they are."""
    kind = REFERENCES.get(name)
    if kind is None:
        return value
    if kind == "key" and "admin_api_keys" in operation.path:
        kind = "admin key"
    return references.resolved(gateway, kind, value)


def _given(
    gateway: Gateway, fields: list[Field], values: Values, operation: AnyOperation
) -> dict[str, Any]:
    """Return the fields that were given, the parts of a part together."""
    found: dict[str, Any] = {}
    for field in fields:
        value: Any = values.get(field.variable)
        is_left_out = value is None or (value is False and field.default is False)
        if is_left_out or (value == () and not field.is_required):
            continue
        name = field.path[-1]
        if field.is_list:
            items: tuple[Any, ...] = values[field.variable]
            value = [_resolved(gateway, operation, name, one) for one in items]
        elif isinstance(value, Days):
            value = value.instant(gateway.now())
        else:
            value = _resolved(gateway, operation, name, value)
        place = found
        for part in field.path[:-1]:
            place = place.setdefault(part, {})
        place[name] = value
    return found


def _named(operation: AnyOperation, option: str) -> Field:
    spec = operation.command
    assert spec is not None, "only operations with a command are offered"
    return next(one for one in fields_of(operation.body) if words_of(one, spec).name == option)


def _idempotency_key(
    gateway: Gateway,
    operation: AnyOperation,
    path: Mapping[str, str],
    body: Mapping[str, Any],
    values: Values,
) -> str:
    """Return a key that the same command line has for a day, or one of its own."""
    if not operation.creates_idempotently:
        return ""
    spec = operation.command
    if spec is None or not spec.is_creation or values.get("again"):
        return secrets.token_hex(16)
    day = gateway.now().date().isoformat()
    said = json.dumps([gateway.identity, day, operation.id, path, body], sort_keys=True)
    return f"tollhouse-{hashlib.sha256(said.encode()).hexdigest()}"


def _write(
    gateway: Gateway, operation: AnyOperation, request: OperationRequest, values: Values
) -> None:
    """Write a file. One that breaks off is removed, because it is not complete."""
    name, as_json = values["output"], values["as_json"]
    pieces = gateway.download(operation, request)
    if name == "-":
        if as_json:
            message = "--json is for the name of a file: give --output FILE too."
            raise click.UsageError(message)
        for piece in pieces:
            click.echo(piece, nl=False)
        return
    part, size = Path(f"{name}.part"), 0
    try:
        with part.open("wb") as file:
            for piece in pieces:
                size += file.write(piece)
                pages.progress(size)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        pages.progress(None)
    part.replace(name)
    output.say(f"Wrote {name}.", as_json=as_json)
    if as_json:
        click.echo(json.dumps({"file": name, "bytes": size}))
