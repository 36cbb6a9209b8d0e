"""Numbers, sizes and nesting that nobody means: refused by a real worker before they cost it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

import httpx2
import pytest
import pytest_asyncio

from tests.support.deployment import COMPLETION_PICO_USD, MODEL, Deployment, chat
from tests.support.processes import Service, running_service
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
CPU_MS_MAX = 10.0
CHOICES_CPU_MS_MAX = 5.0
CHOICES_KILOBYTES_MAX = 1_000
ROUNDS = 7
ABOVE, BELOW = "integer_above_max_value", "integer_below_min_value"
NO_JSON = ("invalid_json", None)
TOO_LONG_USER = ("string_above_max_length", "user")
MEMBERS = 1_000_000

ABSURD: dict[str, tuple[bytes, tuple[str, str | None]]] = {
    "n 129": (b'"n":129', (ABOVE, "n")),
    "n 0": (b'"n":0', (BELOW, "n")),
    "n -0": (b'"n":-0', (BELOW, "n")),
    "n -0.0": (b'"n":-0.0', ("invalid_type", "n")),
    "n 1.0": (b'"n":1.0', ("invalid_type", "n")),
    "n 1e2": (b'"n":1e2', ("invalid_type", "n")),
    "n 10^30": (b'"n":1%b' % (b"0" * 30), (ABOVE, "n")),
    "n -10^30": (b'"n":-1%b' % (b"0" * 30), (BELOW, "n")),
    "n 1e400": (b'"n":1e400', NO_JSON),
    "n NaN": (b'"n":NaN', NO_JSON),
    "n of 4000 digits": (b'"n":%b' % (b"9" * 4_000), (ABOVE, "n")),
    "n of 5000 digits": (b'"n":%b' % (b"9" * 5_000), NO_JSON),
    "n of 200000 digits": (b'"n":%b' % (b"9" * 200_000), NO_JSON),
    "a bound of 2^64": (b'"max_tokens":18446744073709551616', (ABOVE, "max_tokens")),
    "a bound of 4000 digits": (b'"max_tokens":%b' % (b"9" * 4_000), (ABOVE, "max_tokens")),
    "a penalty of 4000 digits": (
        b'"frequency_penalty":%b' % (b"9" * 4_000),
        ("invalid_value", "frequency_penalty"),
    ),
    "a penalty of 1e308": (
        b'"presence_penalty":1e308',
        ("decimal_above_max_value", "presence_penalty"),
    ),
    "a temperature of 4000 digits": (
        b'"temperature":-%b' % (b"9" * 4_000),
        ("invalid_value", "temperature"),
    ),
    "a bias of 4000 digits": (
        b'"logit_bias":{"1":%b}' % (b"9" * 4_000),
        ("invalid_value", "logit_bias"),
    ),
    "a seed of 5000 digits": (b'"seed":%b' % (b"9" * 5_000), NO_JSON),
    "nested 128 deep": (b'"metadata":%b1%b' % (b'{"a":' * 128, b"}" * 128), NO_JSON),
    "nested 20000 deep": (b'"metadata":%b1%b' % (b'{"a":' * 20_000, b"}" * 20_000), NO_JSON),
    "nested 200000 deep and not closed": (b'"tools":%b' % (b"[" * 200_000), NO_JSON),
    "a name twice": (b'"n":1,"n":1', NO_JSON),
    "1001 policies": (
        b'"policy_ids":[%b"x"]' % (b'"x",' * 1_000),
        ("array_above_max_length", "policy_ids"),
    ),
    "a user of 200000 characters": (
        b'"user":"%b"' % (b"x" * 200_000),
        TOO_LONG_USER,
    ),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def service(
    offered: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Service]:
    async with running_service(offered, tmp_path_factory.mktemp("service")) as running:
        yield running
        assert await running.stop() == 0


@pytest.mark.guarantee("T27")
async def test_what_is_absurd_is_refused_in_under_10_ms_of_cpu(
    service: Service, deployment: Deployment
) -> None:
    costs_ms: dict[str, float] = {}
    async with service.client(deployment.key.value) as client:
        for name, (member, refusal) in ABSURD.items():
            costs_ms[name] = await refused_cpu_ms(service, client, member, refusal)

    assert {name: cost for name, cost in costs_ms.items() if cost >= CPU_MS_MAX} == {}
    assert len(deployment.upstream.seen) == 0


@pytest.mark.guarantee("T27")
async def test_a_million_members_cost_10_ms_more_than_a_text_of_their_size(
    service: Service, deployment: Deployment
) -> None:
    members = b",".join(b'"%d":0' % number for number in range(MEMBERS))
    text = b'"user":"%b"' % (b"x" * len(members))
    async with service.client(deployment.key.value) as client:
        text_ms = await refused_cpu_ms(service, client, text, TOO_LONG_USER)
        members_ms = await refused_cpu_ms(service, client, members, NO_JSON)

    assert members_ms < text_ms + CPU_MS_MAX


@pytest.mark.guarantee("T4")
async def test_too_many_choices_are_refused_in_under_5_ms_of_cpu_and_1_mb(
    service: Service, deployment: Deployment
) -> None:
    async with service.client(deployment.key.value) as client:
        (worker,) = service.started_workers()
        await refused_cpu_ms(service, client, *ABSURD["n 0"])
        forget_peak(worker)
        before_kilobytes = peak_kilobytes(worker)
        costs_ms = [
            await refused_cpu_ms(service, client, *ABSURD[name])
            for name in ("n 129", "n 10^30", "n -10^30")
        ]
        grown_kilobytes = peak_kilobytes(worker) - before_kilobytes

    assert max(costs_ms) < CHOICES_CPU_MS_MAX
    assert grown_kilobytes < CHOICES_KILOBYTES_MAX


@pytest.mark.guarantee("T4")
async def test_128_choices_hold_128_times_the_output(deployment: Deployment) -> None:
    script = json.dumps({"script": {"cut": {"how": "stall", "after": "request"}}})
    held: list[int] = []
    async with deployment.customer() as client:
        for number, choices in enumerate((1, 128), start=1):
            body = chat(script, n=choices, max_completion_tokens=10)
            asked = asyncio.create_task(client.post(PATH, json=body))
            exchange = await deployment.upstream.seen.arrival(nth=number)
            await exchange.stall()
            held.append((await deployment.credit()).reserved_pico_usd)
            exchange.release()
            assert (await asked).is_success
            await deployment.settled(number)

    output_pico_usd = 10 * COMPLETION_PICO_USD
    assert held[0] > output_pico_usd
    assert held[1] - held[0] == 127 * output_pico_usd


async def refused_cpu_ms(
    service: Service, client: httpx2.AsyncClient, member: bytes, refusal: tuple[str, str | None]
) -> float:
    """Median of what each refusal adds, with what the worker does after its answer."""
    body = b'{"model":"%b","messages":[{"role":"user","content":"Hi"}],%b}' % (
        MODEL.encode(),
        member,
    )
    (worker,) = service.started_workers()
    taken_ms: list[float] = []
    used_ms = cpu_ms(worker)
    for _ in range(ROUNDS):
        answer = await client.post(PATH, content=body, headers={"content-type": "application/json"})
        error = answer.json()["error"]
        assert (error["code"], error["param"]) == refusal
        assert answer.status_code == httpx2.codes.BAD_REQUEST
        before_ms, used_ms = used_ms, cpu_ms(worker)
        taken_ms.append(used_ms - before_ms)
    return median(taken_ms)


def forget_peak(process: int) -> None:
    Path(f"/proc/{process}/clear_refs").write_text("5")


def peak_kilobytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def cpu_ms(process: int) -> float:
    """Of all its threads; the kernel counts nanoseconds here, and hundredths elsewhere."""
    threads = Path(f"/proc/{process}/task").iterdir()
    used = (int((thread / "schedstat").read_text().split()[0]) for thread in threads)
    return sum(used) / 1e6
