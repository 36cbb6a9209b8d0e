"""What every driver shares: it runs in an SDK's own environment, so nothing of Tollhouse is here.

A check works on both clients of an SDK: what the blocking one returns is taken as it is, what the
other one returns is awaited.
"""

import asyncio
import inspect
import json
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 120.0
TRACE_LINES_MAX = 12


@dataclass
class Client:
    """One kind of client of the SDK, for one check after the other.

    `stage` holds what the test has prepared: addresses, keys and models. `open` makes a client
    that tells the gateway the check's name.
    """

    sdk: Any
    mode: str
    stage: dict[str, Any]
    factory: Callable[["Client", dict[str, Any]], Any]
    check: str = ""
    requests: int | None = None
    connections: Any = None

    def open(self, **options: object) -> Any:  # noqa: ANN401 - whatever the SDK has
        """All of them share connections, since to make these takes longer than a check."""
        if self.connections is None:
            kind = "DefaultHttpxClient" if self.mode == "sync" else "DefaultAsyncHttpxClient"
            self.connections = getattr(self.sdk, kind)(timeout=TIMEOUT_SECONDS)
        return self.factory(self, {"http_client": self.connections, **options})

    @property
    def label(self) -> str:
        return f"{self.mode}.{self.check}"

    async def close(self) -> None:
        if self.mode == "sync":
            self.connections.close()
        else:
            await self.connections.aclose()


Check = Callable[[Client], Awaitable[None]]


async def got(value: Any) -> Any:  # noqa: ANN401 - whatever the SDK has
    return await value if inspect.isawaitable(value) else value


async def items(stream: Any) -> list[Any]:  # noqa: ANN401 - whatever the SDK has
    if hasattr(stream, "__aiter__"):
        return [item async for item in stream]
    return list(stream)


@asynccontextmanager
async def entered(manager: Any) -> AsyncGenerator[Any]:  # noqa: ANN401 - whatever the SDK has
    if hasattr(manager, "__aenter__"):
        async with manager as inner:
            yield inner
    else:
        with manager as inner:
            yield inner


def equal(found: object, expected: object) -> None:
    if found != expected:
        message = f"found {found!r}, expected {expected!r}"
        raise AssertionError(message)


def holds(condition: object) -> None:
    equal(bool(condition), expected=True)


def scripted(**fields: object) -> str:
    """A message that tells the upstream how to answer."""
    return json.dumps({"script": fields})


def asking(content: str) -> list[Any]:
    return [{"role": "user", "content": content}]


def forms(said: Any) -> tuple[Any, ...]:  # noqa: ANN401 - whatever the SDK has
    """What callers make of an answer before they send it back."""
    return said, said.model_dump(), said.to_dict()


def prompt_tokens(content: str) -> int:
    """As the upstream counts one message."""
    return 1 + len(content.split())


async def run(checks: dict[str, Check], clients: list[Client]) -> None:
    """One line for each check of each client, then how many there were."""
    for client in clients:
        for name, check in checks.items():
            client.check, client.requests = name, None
            fault = await _fault(check, client)
            tell(check=client.label, fault=fault, requests=client.requests)
        await client.close()
    tell(checks=len(checks) * len(clients))


async def _fault(check: Check, client: Client) -> str | None:
    try:
        await check(client)
    except Exception:  # noqa: BLE001 - the line tells it
        return "\n".join(traceback.format_exc().splitlines()[-TRACE_LINES_MAX:])
    return None


def tell(**line: object) -> None:
    print(json.dumps(line), flush=True)  # noqa: T201 - how a driver speaks


def main(checks: dict[str, Check], clients: Callable[[dict[str, Any]], list[Client]]) -> None:
    """The stage comes on standard input."""
    asyncio.run(run(checks, clients(json.load(sys.stdin))))
