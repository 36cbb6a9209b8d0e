"""Output of commands: tables for people, one JSON document for programs.

Standard output has the result and nothing else. rich is imported only by what draws with it: it
takes longer to import than many commands take to run.
"""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import click
import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.text import Text

UNBOUNDED_COLUMNS: Final = 10_000
LINED_COLUMNS: Final = frozenset({"draft", "published"})
"""Columns whose values can have several lines."""
FOLDED_COLUMNS: Final = (
    frozenset({"name", "text", "reason", "found", "remedy", "changes", "ended", "project", "key"})
    | LINED_COLUMNS
)
NOTHING: Final = "-"
SHOWN_ONCE: Final = "The value is shown only now. Store it where the client reads it."
STYLES: Final = {"ok": "green", "warning": "yellow", "failure": "bold red"}

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"


def show(body: Struct, *, as_json: bool) -> None:
    """Print one object, a line for each field."""
    if as_json:
        _print_json(body)
        return
    show_fields(msgspec.to_builtins(body))


def show_fields(fields: dict[str, JsonValue]) -> None:
    """Print a line for each field."""
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.text import Text  # noqa: PLC0415 - see above

    name_columns = max(map(len, fields), default=0)
    console = Console()
    for name, value in fields.items():
        if name != "object":
            line = Text.assemble((name.ljust(name_columns), "bold"), "   ", _cell(name, value))
            # Not folded, so that a key can be copied from a narrow terminal.
            console.print(line, soft_wrap=True)


def note(text: str) -> None:
    """Print a line on standard error, unless the command answers a program with `--json`."""
    context = click.get_current_context(silent=True)
    if context is None or not context.params.get("as_json"):
        click.echo(text, err=True)


def show_list(body: Struct, columns: Sequence[str], *, as_json: bool) -> None:
    """Print the items in `data`, a line for each."""
    if as_json:
        _print_json(body)
        return
    tree = msgspec.to_builtins(body)
    show_rows(tree["data"], columns)
    if tree.get("has_more"):
        click.echo("There are more items. Only the first ones are shown.", err=True)


def show_rows(rows: Sequence[dict[str, JsonValue]], columns: Sequence[str]) -> None:
    """Print a table. Values that users copy are not folded."""
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.table import Table  # noqa: PLC0415 - see above

    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=name not in FOLDED_COLUMNS, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(name, row[name]) for name in columns))
    console = Console()
    unbounded = console.options.update(width=UNBOUNDED_COLUMNS)
    if console.is_terminal:
        if console.measure(table, options=unbounded).minimum <= console.width:
            console.print(table)
            return
        # Columns beside each other would cut off IDs.
        for row in rows:
            show_fields({name: row[name] for name in columns if row[name] is not None})
            console.print()
        return
    # A pipe has no width. Print whole lines without padding.
    console.width = UNBOUNDED_COLUMNS
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def visible(text: str) -> str:
    """Escape control characters: a name can come from any customer."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def visible_lines(text: str) -> str:
    """Escape control characters but line ends."""
    return "\n".join(map(visible, text.split("\n")))


def say(text: str, *, as_json: bool) -> None:
    """Print a sentence for people; nothing with `--json`."""
    if not as_json:
        click.echo(text)


def confirm(question: str, *, yes: bool, as_json: bool) -> None:
    """Ask the operator and abort unless they agree. Without a terminal, --yes is required."""
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        message = f"{question} Pass --yes to confirm: there is no terminal to ask on."
        raise click.UsageError(message)
    click.confirm(question, abort=True, err=True)


def counted(count: int, one: str, many: str) -> str:
    """Return the count with the words for one or for many."""
    return f"{count} {one if count == 1 else many}"


@contextmanager
def progress_bars(*, as_json: bool) -> Generator["Progress", None, None]:
    """Show progress bars on standard error during the block, if it is a terminal."""
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.progress import Progress  # noqa: PLC0415 - see above

    console = Console(stderr=True)
    is_visible = console.is_terminal and not as_json
    with Progress(console=console, transient=True, disable=not is_visible) as bars:
        yield bars


def _print_json(body: Struct) -> None:
    click.echo(msgspec.json.encode(body))


def _cell(name: str, value: JsonValue) -> "Text":
    """Return the value as text without markup, with an instant as a UTC date and time."""
    from rich.text import Text  # noqa: PLC0415 - see above

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
