"""Makes the command of an operation, with its options, from its declaration."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import click
from click.shell_completion import CompletionItem
from msgspec import inspect

from tollhouse.cli.arguments import example
from tollhouse.cli.verbs import completion, running
from tollhouse.cli.verbs.values import (
    NOT_CLEARED,
    PAGING,
    Field,
    Reference,
    fields_of,
    is_fixed,
    parameter_type,
    path_fields,
    words_of,
)
from tollhouse.contract.command import Command
from tollhouse.contract.operation import AnyOperation, OperatorOperation
from tollhouse.contract.report_operations import LIST_REQUESTS

_AGAIN: Final = (
    "\n\nYou can repeat the command line after a failure: it creates once a day (UTC), and then "
    "shows what it created before. --again creates another one."
)


def command(operation: AnyOperation) -> click.Command:
    """Return the command of an operation."""
    spec = operation.command
    assert spec is not None, "only operations with a command are offered"
    return click.Command(
        spec.name.rpartition(" ")[2],
        callback=click.pass_context(partial(running.run, operation)),
        help=spec.help + (_AGAIN if spec.is_creation else ""),
        epilog=example(f"tollhouse {spec.name} {spec.example}".strip()),
        params=list(_parameters(operation, spec)),
    )


def _parameters(operation: AnyOperation, spec: Command) -> Iterator[click.Parameter]:
    queried, sent = fields_of(operation.query), fields_of(operation.body)
    fields = [*path_fields(operation), *queried, *sent]
    by_name = {
        field.variable: field
        for field in fields
        if field in sent or not (field.variable in PAGING or is_fixed(field))
    }
    for name in spec.arguments.split():
        yield _argument(by_name.pop(name), spec, operation)
    for field in by_name.values():
        yield _option(field, spec, is_past=field in queried, operation=operation)
    if any(field.variable == "after" for field in queried):
        yield from _list_options(spec)
    if operation is LIST_REQUESTS:
        yield click.Option(
            ["--follow"], is_flag=True, help="Go on with new requests until you press Ctrl+C."
        )
    clearable = [words_of(each, spec).name for each in sent if each.cleared is not NOT_CLEARED]
    if clearable and operation.method == "PATCH":
        yield click.Option(
            ["--clear", "cleared"],
            type=click.Choice(clearable),
            multiple=True,
            help="Empty this field, or restore its default. Can be given several times.",
        )
    yield from _common_options(operation, spec)


def _argument(field: Field, spec: Command, operation: AnyOperation) -> click.Argument:
    kind = _type(field, operation, is_past=False)
    name = words_of(field, spec).name.upper().replace("-", "_")
    return click.Argument(
        [field.variable],
        type=kind,
        metavar=f"[{name}]..." if field.is_list else name,
        nargs=-1 if field.is_list else 1,
        required=field.is_required and not field.is_list,
        shell_complete=_completion(kind),
    )


def _option(field: Field, spec: Command, *, is_past: bool, operation: AnyOperation) -> click.Option:
    words = words_of(field, spec)
    is_flag = isinstance(field.node, inspect.BoolType)
    name = f"--{words.name}"
    if is_flag and field.default is not False:
        name = f"{name}/--no-{words.name}"
    is_begin = field.variable == "start_time" and bool(spec.starts)
    is_required = field.is_required and not is_begin and not _is_found(field, operation)
    default = spec.starts if is_begin else field.default
    said = words.help
    if default and not is_flag and "When left out" not in said:
        said = f"{said} When left out, {default}."
    kind = None if is_flag else _type(field, operation, is_past=is_past)
    return click.Option(
        [name, field.variable],
        type=kind,
        is_flag=is_flag,
        multiple=field.is_list,
        required=is_required,
        default=spec.starts if is_begin else None,
        help=said,
        shell_complete=None if kind is None else _completion(kind),
    )


def _is_found(field: Field, operation: AnyOperation) -> bool:
    """Return whether the command finds a required value by itself."""
    is_project_of_key = field.variable == "project_id" and "{api_key_id}" in operation.path
    return field.variable == "revision" or is_project_of_key


def _type(field: Field, operation: AnyOperation, *, is_past: bool) -> click.ParamType[Any]:
    kind = parameter_type(field, is_past=is_past)
    if isinstance(kind, Reference) and kind.kind == "key" and "admin_api_keys" in operation.path:
        return Reference("admin key")
    return kind


def _completion(kind: click.ParamType[Any]) -> Callable[..., list[CompletionItem]]:
    """Return what completes a value: names of objects, or what the type itself knows."""
    if isinstance(kind, Reference):
        return partial(completion.names, kind.kind)
    return kind.shell_complete


def _list_options(spec: Command) -> Iterator[click.Parameter]:
    yield click.Option(
        ["--limit", "shown_max"],
        type=click.IntRange(1),
        default=spec.shown_max,
        help="The most items to show.",
    )
    yield click.Option(["--after"], help="Go on after this ID: the last one of a list.")


def _common_options(operation: AnyOperation, spec: Command) -> Iterator[click.Parameter]:
    if operation.result is None:
        yield click.Option(
            ["--output"],
            type=click.Path(dir_okay=False, allow_dash=True),
            default="-",
            help="The file to write; `-` is standard output.",
        )
    if spec.is_creation and operation.creates_idempotently:
        yield click.Option(["--again"], is_flag=True, help="Create another one.")
    if spec.question:
        yield click.Option(["--yes"], is_flag=True, help="Do not ask for confirmation.")
    is_operators = isinstance(operation, OperatorOperation)
    if not is_operators or (
        operation.is_of_organization and "{organization_id}" not in operation.path
    ):
        yield click.Option(
            ["--org", "organization"],
            metavar="ORGANIZATION",
            help="The organization, by name or ID, on a host. Needed only if there are several.",
        )
    if not is_operators:
        yield click.Option(
            ["--profile"],
            envvar="TOLLHOUSE_PROFILE",
            help="Use this profile of `tollhouse login`, not the configuration of this host.",
        )
    yield click.Option(
        ["--json", "as_json"], is_flag=True, help="Print one JSON document instead of tables."
    )
