"""Models on the shelf, and requests that went well and that did not."""

import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from httpx2 import AsyncClient

from tests.console.judging import RIDDLE
from tests.console.seeding import Seeded
from tests.identity.waiting import until
from tests.support.deployment import model
from tests.support.gateway import Gateway
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

LARGE: Final = "example/large"
UNAVAILABLE: Final = "example/asleep"
REFUSED: Final = 3
ANSWERED: Final = 5
CARDS_REFUSED: Final = 11


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
        # Before a health check finds that nothing listens: the gateway would refuse it itself.
        await client.post(path, json=_asked(UNAVAILABLE))
        for number in range(ANSWERED):
            answer = await client.post(path, json=_asked(LARGE, stream=number % 2 == 0))
            assert answer.status_code == 200, answer.text
        await client.post(path, json=_asked("example/unknown"))
        await client.post(path, json=_asked(LARGE, temperature="hot"))
        upstream.queue(
            UpstreamScript(status=500, body={"error": {"message": "out of memory"}}), times=9
        )
        failed = await client.post(path, json=_asked(LARGE))
        upstream.scripts.clear()
    await _written(gateway, admin_key, count=ANSWERED + REFUSED + 1)
    return failed.headers["x-request-id"]


async def be_judged(gateway: Gateway, seeded: Seeded) -> None:
    """Card numbers that are refused, more than a page shows, and one that cannot be judged."""
    path = "/v1/chat/completions"
    async with gateway.client(seeded.judged_key) as client:
        for number in range(CARDS_REFUSED):
            asked = _asked(LARGE, content=f"Charge 4929 1111 2222 33{number:02}, please.")
            refused = await client.post(path, json=asked)
            assert refused.status_code == 403, refused.text
        failed = await client.post(path, json=_asked(LARGE, content=f"A {RIDDLE}."))
        assert failed.status_code == 503, failed.text
    async with gateway.client(seeded.admin_key) as client:
        await until(lambda: _are_decided(client, seeded.judging_policy_id))


async def _are_decided(client: AsyncClient, policy_id: str) -> bool:
    path = f"/manage/v1/organization/policies/{policy_id}/decisions"
    page = await client.get(path, params={"limit": 100})
    return len(page.json()["data"]) > CARDS_REFUSED


def _asked(name: str, content: str = "Say hello.", **fields: object) -> dict[str, Any]:
    return {"model": name, "messages": [{"role": "user", "content": content}], **fields}


async def _written(gateway: Gateway, admin_key: str, *, count: int) -> None:
    """Records are written off the path of their requests."""

    async def are_written() -> bool:
        async with gateway.client(admin_key) as client:
            page = await client.get("/manage/v1/organization/requests")
        return len(page.json()["data"]) >= count

    await until(are_written)
