"""Reporting a command's failure on standard error: a sentence, or with `--json` an object."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import click
import msgspec
from msgspec import Struct

from tollhouse.base.errors import DeploymentError, GatewayError, InvalidInput

FAILED: Final = 1
USED_WRONGLY: Final = 2


class CommandError(Struct, frozen=True, kw_only=True):
    """The code and message of a failure."""

    code: str
    message: str


class Envelope(Struct, frozen=True, kw_only=True):
    """The object on standard error if a command with `--json` fails."""

    error: CommandError


@contextmanager
def rendered(*, as_json: bool) -> Generator[None, None, None]:
    """Print an expected failure of the block and exit. Other exceptions are bugs and propagate."""
    try:
        yield
    except click.Abort:
        _exit(FAILED, "aborted", "Aborted.", as_json=as_json)
    except click.ClickException as error:
        if not as_json:
            error.show()
            sys.exit(error.exit_code)
        _exit(error.exit_code, "usage", error.format_message(), as_json=True)
    except InvalidInput as error:
        _exit(USED_WRONGLY, error.code, error.message, as_json=as_json)
    except GatewayError as error:
        _exit(FAILED, error.code, error.message, as_json=as_json)
    except OSError as error:
        _exit(FAILED, "system", str(error), as_json=as_json)
    except DeploymentError as error:
        _exit(FAILED, error.code, str(error), as_json=as_json)


def _exit(exit_code: int, code: str, message: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(
            msgspec.json.encode(Envelope(error=CommandError(code=code, message=message))), err=True
        )
    else:
        click.echo(f"Error: {message}", err=True)
    sys.exit(exit_code)
