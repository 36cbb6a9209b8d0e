"""Times to the first token of prompts that were sent before, by the same or by another customer."""

import math
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import httpx2

from tests.support.deployment import Deployment, chat

CHAT = "/v1/chat/completions"
VOCABULARY = ("gate", "toll", "road", "coin", "rain", "night", "horse", "bridge")


@dataclass(frozen=True)
class PrefixTimings:
    """Seconds to the first token: what another customer sent before, what none did, and own."""

    foreign: list[float] = field(default_factory=list[float])
    fresh: list[float] = field(default_factory=list[float])
    own: list[float] = field(default_factory=list[float])


async def time_prompts(
    first: Deployment,
    second: Deployment,
    chance: Random,
    *,
    prompts: int,
    words: int,
    **fields: object,
) -> PrefixTimings:
    """Let the first customer send each prompt; then both send it and a fresh one, in any order."""
    timings = PrefixTimings()
    async with first.customer() as sender, second.customer() as other:
        for _ in range(prompts):
            sent, fresh = (" ".join(chance.choices(VOCABULARY, k=words)) for _ in range(2))
            await _first_token_seconds(sender, sent, **fields)
            turns = [
                (timings.foreign, other, sent),
                (timings.fresh, other, fresh),
                (timings.own, sender, sent),
            ]
            for times, client, prompt in chance.sample(turns, len(turns)):
                times.append(await _first_token_seconds(client, prompt, **fields))
    return timings


async def _first_token_seconds(client: httpx2.AsyncClient, prompt: str, **fields: object) -> float:
    body = chat(prompt, stream=True, max_tokens=2, **fields)
    begun = time.perf_counter()
    first: float | None = None
    async with client.stream("POST", CHAT, json=body) as answer:
        assert answer.is_success
        async for piece in answer.aiter_bytes():
            if first is None and b"data: " in piece:
                first = time.perf_counter() - begun
    assert first is not None
    return first


def same_distribution_p(left: Sequence[float], right: Sequence[float]) -> float:
    """Return p of the two-sample Kolmogorov-Smirnov test, by its asymptotic series."""
    ordered = sorted(left), sorted(right)
    distance = max(
        abs(
            bisect_right(ordered[0], each) / len(left) - bisect_right(ordered[1], each) / len(right)
        )
        for each in (*left, *right)
    )
    size = math.sqrt(len(left) * len(right) / (len(left) + len(right)))
    scaled = (size + 0.12 + 0.11 / size) * distance
    if scaled < 0.2:
        return 1.0  # where the series converges slowly, and p is above 0.999999
    terms = ((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, 2 * sum(terms)))
