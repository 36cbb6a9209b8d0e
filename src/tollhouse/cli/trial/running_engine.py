"""Announcing an engine that a command runs, and waiting for the signal that ends it."""

import asyncio
import signal
from typing import Final, Literal

import click
from msgspec import Struct

from tollhouse.cli import output

TEXT: Final = """\
{name} answers at {base_url}. Add this to tollhouse.toml to offer its model:

{configuration}
Press CTRL-C to stop it.
"""


class RunningEngine(Struct, frozen=True, kw_only=True):
    """An engine that accepts requests. `configuration` is its catalog as TOML."""

    object: Literal["engine"] = "engine"
    name: str
    base_url: str
    configuration: str


async def announce_and_wait(engine: RunningEngine, *, as_json: bool) -> None:
    """Print the engine and return at SIGINT or SIGTERM.

    Handlers are installed first: a reader of the announcement may send a signal at once.
    """
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ending.set)
    if as_json:
        output.show(engine, as_json=True)
    else:
        text = TEXT.format(
            name=engine.name, base_url=engine.base_url, configuration=engine.configuration
        )
        click.echo(text, nl=False)
    await ending.wait()
