"""Editing a text in the operator's editor, without losing it if a later step fails."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from tollhouse.base.errors import GatewayError, InvalidInput, InvalidRequest, Kind

T = TypeVar("T")


class EditingFailed(GatewayError):
    """The editor could not be started, or exited with an error."""

    kind = Kind.UNAVAILABLE
    code = "editing_failed"
    template = "{self.reason}. Set the variable EDITOR to another editor."
    reason: str


def edited(text: str, use: Callable[[str], T], *, as_json: bool) -> T:
    """Open a text in `$EDITOR` and pass the edited text to `use`. Aborts if it is unchanged.

    If `use` fails, the edited text is kept in a file that the error names.
    """
    path = _file(text)
    try:
        used = _used(path, text, use, as_json=as_json)
    except (GatewayError, click.Abort) as error:
        if path.read_bytes() == text.encode():
            path.unlink()
        elif isinstance(error, GatewayError):
            error.message = f"{error.message} Your text is kept in {path}."
        raise
    path.unlink()
    return used


def _used(path: Path, text: str, use: Callable[[str], T], *, as_json: bool) -> T:
    """Edit until `use` accepts the text, or until the operator gives up."""
    while True:
        _open_editor(path)
        try:
            changed = _read(path)
            if changed == text:
                raise click.Abort
            return use(changed)
        except InvalidInput as error:
            if as_json or not sys.stdin.isatty():
                raise
            click.echo(f"Error: {error.message}", err=True)
            if not click.confirm("Edit it again?", default=True, err=True):
                raise


def _file(text: str) -> Path:
    """Write the text to a new file that only its owner can read."""
    descriptor, name = tempfile.mkstemp(prefix="tollhouse-", suffix=".toml")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)


def _open_editor(path: Path) -> None:
    try:
        click.edit(filename=str(path))
    except click.ClickException as error:
        raise EditingFailed(reason=error.message) from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        message = "The text is not valid UTF-8."
        raise InvalidRequest("invalid_value", message) from None
