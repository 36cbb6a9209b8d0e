"""What a verb shows: tables for people, one JSON document for programs.

Standard output holds the result and nothing else.
"""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias

import click
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

UNBOUNDED_COLUMNS: Final = 10_000
LINED_COLUMNS: Final = frozenset({"draft", "published"})
"""What stands here may have several lines."""
FOLDED_COLUMNS: Final = frozenset({"name", "reason", "found", "remedy", "changes"}) | LINED_COLUMNS
NOTHING: Final = "-"
STYLES: Final = {"ok": "green", "warning": "yellow", "failure": "bold red"}

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"


def show(body: Struct, *, as_json: bool) -> None:
    """One thing: a line for each of its fields."""
    if as_json:
        _print_json(body)
        return
    fields: dict[str, JsonValue] = msgspec.to_builtins(body)
    name_columns = max(map(len, fields))
    console = Console()
    for name, value in fields.items():
        if name != "object":
            line = Text.assemble((name.ljust(name_columns), "bold"), "   ", _cell(name, value))
            # Never folded, so that a key can be copied from a narrow terminal too.
            console.print(line, soft_wrap=True)


def show_list(body: Struct, columns: Sequence[str], *, as_json: bool) -> None:
    """The items in `data`, a line for each."""
    if as_json:
        _print_json(body)
        return
    tree = msgspec.to_builtins(body)
    show_rows(tree["data"], columns)
    if tree.get("has_more"):
        click.echo("There are more, which are not shown.", err=True)


def show_rows(rows: Sequence[dict[str, JsonValue]], columns: Sequence[str]) -> None:
    """A table; what one would copy is not folded."""
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=name not in FOLDED_COLUMNS, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(name, row[name]) for name in columns))
    console = Console()
    unbounded = console.options.update(width=UNBOUNDED_COLUMNS)
    if console.is_terminal and console.measure(table, options=unbounded).minimum <= console.width:
        console.print(table)
        return
    # Whoever reads a pipe does not count columns, and a terminal that is too narrow breaks lines
    # where a table would cut off IDs: lines go whole, and without their padding.
    console.width = UNBOUNDED_COLUMNS
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def visible(text: str) -> str:
    """What a terminal would obey or hide is written out: names come from anybody."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def visible_lines(text: str) -> str:
    """As visible, in the lines that it has."""
    return "\n".join(map(visible, text.split("\n")))


def say(text: str, *, as_json: bool) -> None:
    """A sentence beside the result, for people only."""
    if not as_json:
        click.echo(text)


def confirm(question: str, *, yes: bool, as_json: bool) -> None:
    """Go on only if the operator wants it; who cannot be asked must have said so."""
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        message = f"{question} Nobody can be asked here, so this needs --yes."
        raise click.UsageError(message)
    click.confirm(question, abort=True, err=True)


def _print_json(body: Struct) -> None:
    click.echo(msgspec.json.encode(body))


def _cell(name: str, value: JsonValue) -> Text:
    """Not a string, in which the library would look for markup."""
    if isinstance(value, int) and name.endswith("_at"):
        return Text(datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%SZ"))
    words = visible_lines(_words(value)) if name in LINED_COLUMNS else visible(_words(value))
    return Text(words, style=STYLES.get(words, "") if name == "outcome" else "")


def _words(value: JsonValue) -> str:
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case dict():
            return " ".join(_words(part) for part in value.values() if part is not None)
        case list():
            return ", ".join(_words(part) for part in value) or NOTHING
        case _:
            return visible(str(value))
