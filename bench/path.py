"""`python -m bench.path [--stream] [--json]`: the files and calls that a plain chat request passes.

One worker with authentication, limits over Redis, durable admission and activity answers requests
on some connections at once, under cProfile. Counts are those of one request: what runs less often
than for every fourth request, such as heartbeats and what a connection does once, is left out. With
`--stream` they are those of one chunk in the same way: what a stream does once is left out.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import cProfile
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

import tollhouse
from bench.support.customers import customer
from tests.support import databases, deployment
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.redis_server import running_redis
from tests.support.upstream import upstream_process
from tollhouse.settings import RedisSettings

PACKAGE: Final = Path(tollhouse.__file__).parent
NOT_OF_A_WORKER: Final = ("trial",)
WARM_REQUESTS: Final = 5
OK: Final = 200
LEAST: Final = 0.25
"""What runs less often than that for each request is no part of it. Requests that arrive together
share statements: those run for every second request, or for more of them on a busy machine.
"""


@dataclass(frozen=True, kw_only=True)
class Load:
    """The request that is repeated, and what its figures are divided by."""

    body: dict[str, Any]
    connections: int
    requests: int
    warm_requests: int = WARM_REQUESTS
    chunks: int = 1

    @property
    def counted(self) -> int:
        """All requests, or all chunks of streams."""
        return self.connections * self.requests * self.chunks


def plain(requests: int) -> Load:
    """Whole answers on 32 connections."""
    return Load(body=deployment.chat(), connections=32, requests=requests)


def streamed(requests: int, *, chunks: int = 200) -> Load:
    """Streams on 4 connections, slow enough that every chunk arrives by itself."""
    text = "one" + " word" * (chunks - 1)
    script = {"script": {"text": text, "between_events_ms": 5}}
    body = deployment.chat(json.dumps(script), max_tokens=chunks, stream=True)
    return Load(body=body, connections=4, requests=requests, warm_requests=1, chunks=chunks)


@dataclass(frozen=True, kw_only=True)
class RequestPath:
    """What one request or chunk passes. Calls are rounded means."""

    files: int
    python_calls: int
    builtin_calls: int
    tollhouse_calls: int
    calls_by_package: dict[str, int]
    files_by_package: dict[str, list[str]]


def send(gateway: Gateway, key: str, load: Load, requests: int) -> None:
    """Send so many requests on one connection."""
    connection = HTTPConnection(gateway.host, gateway.port)
    body = json.dumps(load.body)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    for _ in range(requests):
        connection.request("POST", "/v1/chat/completions", body, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == OK, answer.status
    connection.close()


async def profiled(load: Load) -> cProfile.Profile:
    """Return the profile of a worker's event loop while it answers this load."""
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(upstream_process())
        url = await stack.enter_async_context(databases.temporary())
        redis = stack.enter_context(running_redis())
        settings = msgspec.structs.replace(
            deployment.offering(settings_for(url), upstream), redis=RedisSettings(url=redis.url)
        )
        org, key = await customer(settings)
        stack.push_async_callback(org.database.close)
        gateway = await stack.enter_async_context(running_gateway(settings))
        await send_all(gateway, key, load, load.warm_requests)
        profile = cProfile.Profile()
        profile.enable()
        await send_all(gateway, key, load, load.requests)
        profile.disable()
        return profile


async def send_all(gateway: Gateway, key: str, load: Load, requests: int) -> None:
    """Send so many requests on each connection."""
    threads = (
        asyncio.to_thread(send, gateway, key, load, requests) for _ in range(load.connections)
    )
    await asyncio.gather(*threads)


def counted(profile: cProfile.Profile, requests: int) -> RequestPath:
    """Return what one of so many requests, or chunks, passed."""
    calls = [(code, times / requests) for code, times in _entries(profile)]
    calls = [(code, times) for code, times in calls if times >= LEAST]
    by_package, files = Counter[str](), dict[str, set[str]]()
    for code, times in calls:
        if not isinstance(code, str) and (place := _place(code.co_filename)) is not None:
            package = place.parts[0].removesuffix(".py")
            by_package[package] += round(times)
            files.setdefault(package, set()).add(place.as_posix())
    return RequestPath(
        files=sum(map(len, files.values())),
        python_calls=round(sum(times for code, times in calls if not isinstance(code, str))),
        builtin_calls=round(sum(times for code, times in calls if isinstance(code, str))),
        tollhouse_calls=by_package.total(),
        calls_by_package=dict(by_package.most_common()),
        files_by_package={package: sorted(found) for package, found in sorted(files.items())},
    )


def _entries(profile: cProfile.Profile) -> Iterator[tuple[Any, int]]:
    """Yield the code object, or the name of a built-in, and how often it was called."""
    for entry in profile.getstats():
        yield entry.code, entry.callcount


def _place(file: str) -> Path | None:
    """Return the path below the package; None for files of others."""
    path = Path(file)
    if not path.is_relative_to(PACKAGE):
        return None
    place = path.relative_to(PACKAGE)
    return None if place.parts[0] in NOT_OF_A_WORKER else place


def main() -> int:
    """Print the path of one request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--stream", action="store_true", help="count for one chunk of a stream")
    parser.add_argument("--requests", type=int, default=20, help="on each connection")
    arguments = parser.parse_args()
    load = streamed(arguments.requests) if arguments.stream else plain(arguments.requests)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        profile = runner.run(profiled(load))
    path = counted(profile, load.counted)
    shown = json.dumps(asdict(path)) if arguments.json else "\n".join(_lines(path))
    sys.stdout.write(f"{shown}\n")
    return 0


def _lines(path: RequestPath) -> Iterator[str]:
    yield f"{path.files} files of Tollhouse, {path.tollhouse_calls} calls into them"
    yield f"{path.python_calls} calls of Python and {path.builtin_calls} of built-ins in all"
    for package, files in path.files_by_package.items():
        yield f"{path.calls_by_package[package]:5}  {package:14} {len(files):2} files"


if __name__ == "__main__":
    sys.exit(main())
