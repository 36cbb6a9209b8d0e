"""Applications that stand in for the gateway behind a real server."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from tollhouse.observability import metrics
from tollhouse.serving.server import AsgiApplication
from tollhouse.settings import DatabaseSettings, SecretSettings, ServerSettings, Settings

STALL_SECONDS_MAX = 6.0
"""For what a case leaves unfinished; a machine that stands still for a while takes no longer."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BodyTooLarge(Exception):
    """More than the bound was declared or counted."""


class PeerLeft(Exception):
    """The body will never be whole."""


def settings(**server: Any) -> Settings:  # noqa: ANN401 - whatever the section holds
    """A configuration for a server under test, with ports of the system's choice."""
    return Settings(
        database=DatabaseSettings(url="postgresql://127.0.0.1/none"),
        secrets=SecretSettings(
            master="0123456789abcdefghijklmnopqrstuv",
        ),
        server=ServerSettings(port=0, probe_port=0, **server),
    )


class Echo:
    """Says how many bytes of body it has processed; a disconnect is not an end of body."""

    def __init__(self, given: Settings) -> None:
        self._server = given.server
        self._processed = 0
        self.is_ready = True

    async def startup(self) -> AsgiApplication:
        return self

    def end_streams(self) -> None:
        pass

    async def shutdown(self) -> None:
        pass

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        try:
            body = await self._read(scope, receive)
        except PeerLeft:
            # Nobody may be there to read it. But Granian calls a malformed body a disconnect too,
            # and makes a 500 of an application that says nothing.
            await answer(send, 400, {}, closes=True)
            return
        except TimeoutError:
            await answer(send, 408, {}, closes=True)
            return
        except BodyTooLarge:
            await answer(send, 413, {}, closes=True)
            return
        if scope["method"] == "CONNECT":
            await answer(send, 405, {})
            return
        if scope["path"] == "/processed":
            await answer(send, 200, {"processed": self._processed})
            return
        self._processed += 1
        await self._work(scope)
        metrics.request_answered("echo", status=200, outcome="succeeded", seconds=0.0)
        await answer(send, 200, report(scope, body))

    async def _work(self, scope: MutableMapping[str, Any]) -> None:
        query = parse_qs(scope["query_string"].decode())
        if scope["path"] == "/slow":
            await asyncio.sleep(float(query["seconds"][0]))
        if scope["path"] == "/stuck":
            time.sleep(float(query["seconds"][0]))  # noqa: ASYNC251 - an event loop that is stuck

    async def _read(self, scope: MutableMapping[str, Any], receive: Receive) -> bytes:
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if int(declared) > self._server.body_bytes_max:
            raise BodyTooLarge
        body = bytearray()
        while True:
            async with asyncio.timeout(self._server.body_seconds):
                message = await receive()
            if message["type"] == "http.disconnect":
                raise PeerLeft
            body += message.get("body", b"")
            if len(body) > self._server.body_bytes_max:
                raise BodyTooLarge
            if not message.get("more_body", False):
                return bytes(body)


class NeverStarts(Echo):
    """Fails before it accepts."""

    async def startup(self) -> AsgiApplication:
        message = "this application never starts"
        raise RuntimeError(message)


class StartsUnlessAsked(Echo):
    """Fails to start with one particular setting, which is sound otherwise."""

    async def startup(self) -> AsgiApplication:
        if self._server.body_bytes_max == 4321:
            message = "this setting keeps the application from starting"
            raise RuntimeError(message)
        return self


def report(scope: MutableMapping[str, Any], body: bytes) -> dict[str, Any]:
    """What a test needs to know of a request that was processed."""
    return {
        "pid": os.getpid(),
        "method": scope["method"],
        "path": scope["path"],
        "received": len(body),
        "sum": sum(body),
        "headers": sorted({name.decode("latin-1") for name, _ in scope["headers"]}),
    }


async def answer(send: Send, status: int, content: Any, *, closes: bool = False) -> None:  # noqa: ANN401 - any JSON
    """One JSON response."""
    body = json.dumps(content).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


on_granian = Echo(settings(body_seconds=STALL_SECONDS_MAX, body_bytes_max=1_000_000))
