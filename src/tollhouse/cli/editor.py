"""Texts that the operator writes in an editor of their own; what was written is never lost."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from tollhouse.base.errors import GatewayError, InvalidRequest, Kind

T = TypeVar("T")


class EditingFailed(GatewayError):
    """The editor could not be started, or says that it failed."""

    kind = Kind.UNAVAILABLE
    code = "editing_failed"

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}. The variable EDITOR names the editor.")


def edited(text: str, use: Callable[[str], T], *, as_json: bool) -> T:
    """Open a text in `$EDITOR` and use what becomes of it; if that fails, it stays in a file.

    An unchanged text means that the operator thought better of it, and aborts.
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
    """At a terminal, what cannot be used may be edited again."""
    while True:
        _open_editor(path)
        try:
            changed = _read(path)
            if changed == text:
                raise click.Abort
            return use(changed)
        except InvalidRequest as error:
            if as_json or not sys.stdin.isatty():
                raise
            click.echo(f"Error: {error.message}", err=True)
            if not click.confirm("Edit it again?", default=True, err=True):
                raise


def _file(text: str) -> Path:
    """Only its owner can read it; the suffix tells the editor what it is."""
    descriptor, name = tempfile.mkstemp(prefix="tollhouse-", suffix=".toml")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)


def _open_editor(path: Path) -> None:
    try:
        click.edit(filename=str(path))
    except click.ClickException as error:
        raise EditingFailed(error.message) from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        message = "The text is not valid UTF-8."
        raise InvalidRequest("invalid_value", message) from None
