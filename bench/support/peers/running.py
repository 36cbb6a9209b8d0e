"""Runs another gateway in front of the same upstreams as Tollhouse."""

import asyncio
import json
import os
import secrets
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Final

from bench.support import load, processes
from bench.support.customers import BenchSetup, Server, free_ports
from bench.support.load import Target
from bench.support.peers.installation import PeerUnavailableError, installed
from bench.support.peers.known import Peer

START_SECONDS_MAX: Final = 180.0
END_SECONDS_MAX: Final = 20.0
ASK_EVERY_SECONDS: Final = 0.5
_SHOWN_CHARACTERS: Final = 300


@asynccontextmanager
async def running(peer: Peer, setup: BenchSetup, folder: Path) -> AsyncGenerator[Server]:
    """Yield the gateway once it answers, on the core where Tollhouse is measured.

    Raises PeerUnavailableError if it cannot be installed or does not answer.
    """
    home = await asyncio.to_thread(installed, peer, setup.interpreter)
    values = _values(setup, home=home, configuration=folder / peer.configuration)
    log = _configured(peer, folder, values)
    with log.open("wb") as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *(Template(word).substitute(values) for word in peer.command),
                cwd=folder,
                env=_environment(peer, folder),
                stdout=output,
                stderr=output,
                process_group=0,
            )
        except FileNotFoundError as error:
            raise PeerUnavailableError(str(error)) from error
    try:
        server = _server(peer, setup, process.pid, values)
        await _until_it_answers(server, process, log)
        measured, _ = processes.cores()
        for each in processes.tree(process.pid):
            processes.pin(each, measured)
        yield server
    finally:
        await _end(process)


def _configured(peer: Peer, folder: Path, values: Mapping[str, str]) -> Path:
    """Write its configuration and return where its log goes."""
    folder.mkdir()
    configuration = folder / peer.configuration
    configuration.write_text(_rendered(peer, values), encoding="utf-8")
    return folder / "log"


def _rendered(peer: Peer, values: Mapping[str, str]) -> str:
    return Template(peer.configuration_file.read_text(encoding="utf-8").strip()).substitute(values)


def _values(setup: BenchSetup, *, home: Path, configuration: Path) -> dict[str, str]:
    """Return what stands for each `$name` in a command and a configuration file."""
    port, stream_port = free_ports(2)
    return {
        "home": str(home),
        "configuration": str(configuration),
        "port": str(port),
        "stream_port": str(stream_port),
        "upstream_port": str(setup.direct.whole.port),
        "stream_upstream_port": str(setup.direct.streamed.port),
        "key": f"sk-{secrets.token_urlsafe(32)}",
    }


def _environment(peer: Peer, folder: Path) -> dict[str, str]:
    """Nothing of this process but the path: no proxy, no setting, and a home that is removed."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), **peer.environment}  # noqa: TID251 - for a child


def _server(peer: Peer, setup: BenchSetup, process: int, values: Mapping[str, str]) -> Server:
    def target(of_tollhouse: Target, port: str, upstream_port: str) -> Target:
        body, header = of_tollhouse.body, peer.configuration_header
        if not peer.has_slash_in_models:
            body = body.replace(b'"example/', b'"', 1)
        rendered = _rendered(peer, {**values, "upstream_port": upstream_port})
        return replace(
            of_tollhouse,
            port=int(port),
            key=values["key"],
            body=body,
            headers=() if header is None else ((header, rendered),),
        )

    stream_port = values["stream_port"] if peer.has_stream_port else values["port"]
    return Server(
        process=process,
        stream_process=process,
        whole=target(setup.tollhouse.whole, values["port"], values["upstream_port"]),
        streamed=target(setup.tollhouse.streamed, stream_port, values["stream_upstream_port"]),
    )


async def _until_it_answers(server: Server, process: asyncio.subprocess.Process, log: Path) -> None:
    """Ask until both a whole answer and a stream arrive, then return."""
    told = "it does not listen"
    with suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS_MAX):
            while process.returncode is None:
                try:
                    for target in (server.whole, server.streamed):
                        await load.send_all(target.port, [target.request], at_once=1)
                except (OSError, EOFError, AssertionError) as error:
                    told = " ".join(str(error).split())
                    await asyncio.sleep(ASK_EVERY_SECONDS)
                else:
                    return
    state = "it ended" if process.returncode is not None else told[:_SHOWN_CHARACTERS]
    raise PeerUnavailableError(f"{state}; its log ends with {_end_of(log)}")


def _end_of(log: Path) -> str:
    return json.dumps(log.read_text(encoding="utf-8", errors="replace")[-_SHOWN_CHARACTERS:])


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and all that it started: they are a process group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_SECONDS_MAX)
