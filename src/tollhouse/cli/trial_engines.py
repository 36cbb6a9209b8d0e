"""What the verbs that run an engine say when it answers: where, and how to put it to use."""

import asyncio
import signal
from typing import Final, Literal

import click
from msgspec import Struct

from tollhouse.cli import output

TEXT: Final = """\
{name} answers on {base_url}. Put this into tollhouse.toml to offer it as a model:

{configuration}
CTRL-C ends it.
"""


class RunningEngine(Struct, frozen=True, kw_only=True):
    """`configuration` is TOML."""

    object: Literal["engine"] = "engine"
    name: str
    base_url: str
    configuration: str


def announce(engine: RunningEngine, *, as_json: bool) -> None:
    """At once, also to whoever reads a pipe."""
    if as_json:
        output.show(engine, as_json=True)
        return
    click.echo(
        TEXT.format(name=engine.name, base_url=engine.base_url, configuration=engine.configuration),
        nl=False,
    )


async def until_ended() -> None:
    """Wait for SIGINT or SIGTERM."""
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ending.set)
    await ending.wait()
