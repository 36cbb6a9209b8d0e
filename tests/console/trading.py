"""Models on the shelf, and requests that went well and that did not."""

import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from tests.identity.waiting import until
from tests.support.gateway import Gateway
from tests.support.shop import model
from tollhouse.settings import Settings
from tollhouse.testing.scripts import Script
from tollhouse.testing.upstream import ScriptedUpstream

LARGE: Final = "example/large"
UNAVAILABLE: Final = "example/asleep"
REFUSED_TWICE: Final = 2
ANSWERED: Final = 5


@contextmanager
def silent_address() -> Generator[str]:
    """Where nothing listens, and nothing else can begin to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"


def on_shelf(settings: Settings, awake_url: str, silent_url: str) -> Settings:
    """Two models that answer, one that sees, one that sleeps and one behind a check."""
    eyes = {"input_modalities": ["text", "image"], "context_length": 32_768}
    return msgspec.structs.replace(
        settings,
        backends={
            "engine": {"replicas": [awake_url], "takes": ["cache_salt"]},
            "asleep": {"replicas": [silent_url], "takes": ["cache_salt"]},
        },
        models={
            LARGE: model(backend="engine", display_name="Example Large"),
            "example/small": model(backend="engine", display_name="Example Small", **eyes),
            UNAVAILABLE: model(backend="asleep", display_name="Example Asleep"),
            "example/locked": model(
                backend="engine", display_name="Example Locked", required_checks=["age"]
            ),
        },
    )


async def trade(gateway: Gateway, upstream: ScriptedUpstream, key: str, admin_key: str) -> str:
    """Some answers, a refusal of ours and failures of an engine; the ID of one that failed."""
    path = "/v1/chat/completions"
    async with gateway.client(key) as client:
        for number in range(ANSWERED):
            answer = await client.post(path, json=_asked(LARGE, stream=number % 2 == 0))
            assert answer.status_code == 200, answer.text
        await client.post(path, json=_asked("example/unknown"))
        await client.post(path, json=_asked(UNAVAILABLE))
        upstream.queue(Script(status=500, body={"error": {"message": "out of memory"}}), times=9)
        failed = await client.post(path, json=_asked(LARGE))
        upstream.scripts.clear()
    await _written(gateway, admin_key, count=ANSWERED + REFUSED_TWICE + 1)
    return failed.headers["x-request-id"]


def _asked(name: str, **fields: object) -> dict[str, Any]:
    return {"model": name, "messages": [{"role": "user", "content": "Say hello."}], **fields}


async def _written(gateway: Gateway, admin_key: str, *, count: int) -> None:
    """Records are written off the path of their requests."""

    async def are_written() -> bool:
        async with gateway.client(admin_key) as client:
            page = await client.get("/manage/v1/organization/requests")
        return len(page.json()["data"]) >= count

    await until(are_written)
