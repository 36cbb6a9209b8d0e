"""Answers as people read them: tables that fit the terminal, and one line for each field."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, cast

import click
import msgspec

from tollhouse.cli import output
from tollhouse.cli.output import JsonValue
from tollhouse.contract.operation import AnyOperation

ONCE: Final = frozenset({"value", "secret"})
"""Members that are shown only when they are made."""
GROUPS: Final = frozenset({"project_id", "api_key_id", "model", "line_item"})
PER_TOKEN: Final = frozenset({"prompt", "completion", "input_cache_read"})
MORE: Final = "There are more items. Only the first ones are shown: --limit and --after go on."
UNSETTLED: Final = (
    "{requests} no final cost yet. The amounts above do not include them; {amount} USD is held."
)

Json = dict[str, Any]


def show(operation: AnyOperation, body: Json, *, as_json: bool) -> None:
    """Print an answer."""
    if as_json:
        click.echo(msgspec.json.encode(body))
        return
    spec = operation.command
    columns = spec.columns.split() if spec is not None else []
    if not columns:
        _show_one(body)
        return
    rows = list(_rows(body["data"]))
    if any("results" in item for item in body["data"]):
        used = {name for row in rows for name in row if row[name] is not None}
        columns = [name for name in columns if name not in GROUPS or name in used]
    output.show_rows([_row(item, columns) for item in rows], columns)
    if body.get("has_more"):
        click.echo(MORE, err=True)
    _show_total(rows, columns)
    _show_unsettled(body.get("unsettled", []))
    _show_gaps(body.get("gaps", []))


def _rows(data: Iterable[Json]) -> Iterator[Json]:
    """Yield the items, or for each bucket of a report its results with their begin."""
    for item in data:
        if "results" not in item:
            yield item
            continue
        for result in item["results"]:
            yield {"start_time": item["start_time"], **result}


def _row(item: Json, columns: list[str]) -> dict[str, JsonValue]:
    return {name: cell(name, _at(item, name.split("."))) for name in columns}


def _at(value: Any, path: list[str]) -> Any:  # noqa: ANN401 - JSON
    """Return the member at a path; of a list, that of each item."""
    for number, name in enumerate(path):
        if isinstance(value, list):
            return [_at(one, path[number:]) for one in cast("list[Any]", value)]
        value = None if value is None else value.get(name)
    return value


def _is_money(value: Any) -> bool:  # noqa: ANN401 - JSON
    return isinstance(value, dict) and {*cast("Json", value)} == {"value", "currency"}


def cell(name: str, value: Any) -> JsonValue:  # noqa: ANN401 - JSON
    """Return a value as people write it: amounts with their currency, times in UTC."""
    last = name.rpartition(".")[2]
    if _is_money(value):
        return f"{value['value']} {value['currency'].upper()}"
    if name.startswith("pricing.") and last in PER_TOKEN:
        return f"{(Decimal(value) * 1_000_000).normalize():f} USD"
    if isinstance(value, int) and last.endswith("_time"):
        at = datetime.fromtimestamp(value, UTC)
        return at.strftime("%Y-%m-%d" if at.hour == at.minute == 0 else "%Y-%m-%d %H:%M")
    return value


def _show_one(body: Json) -> None:
    fields: dict[str, JsonValue] = {}
    tables: dict[str, list[Json]] = {}
    for name, value in _flat(body, ""):
        if isinstance(value, list) and value and isinstance(value[0], dict):
            tables[name] = value
        else:
            fields[name] = cell(name, value)
    output.show_fields(fields)
    for name, items in tables.items():
        flat = [dict(_flat(item, "")) for item in items]
        columns = list(dict.fromkeys(key for item in flat for key in item))
        click.echo(f"\n{name}:")
        rows = [{key: cell(key, item.get(key)) for key in columns} for item in flat]
        output.show_rows(rows, columns)
    if ONCE & fields.keys():
        click.echo(output.SHOWN_ONCE)


def _flat(value: Json, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the members with the names of those of a part after the part's own."""
    member: Any
    for name, member in value.items():
        if isinstance(member, dict) and not _is_money(member):
            yield from _flat(cast("Json", member), f"{prefix}{name}.")
        elif name != "object":
            yield prefix + name, member


def _show_total(rows: list[Json], columns: list[str]) -> None:
    if "start_time" in columns and "amount" in columns and rows:
        total = sum((Decimal(row["amount"]["value"]) for row in rows), Decimal(0))
        click.echo(f"\nTotal: {total.normalize():f} USD")


def _show_unsettled(unsettled: list[Json]) -> None:
    requests = sum(one["requests"] for one in unsettled)
    if requests:
        held = sum((Decimal(one["amount"]["value"]) for one in unsettled), Decimal(0))
        counted = output.counted(requests, "request has", "requests have")
        click.echo(UNSETTLED.format(requests=counted, amount=f"{held.normalize():f}"))


def _show_gaps(gaps: list[Json]) -> None:
    for gap in gaps:
        begin, end = (
            datetime.fromtimestamp(gap[name], UTC).strftime("%Y-%m-%d %H:%M:%SZ")
            for name in ("start_time", "end_time")
        )
        click.echo(
            f"Requests from {begin} to {end} may have no record: a worker had no room for more.",
            err=True,
        )
