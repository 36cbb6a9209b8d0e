"""What a customer used of a real engine, as everybody tells it who counted.

The answer, the ledger, the activity and the engine's own counters must say the same.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from openai import AsyncOpenAI, OpenAI
from openai.types import CompletionUsage

from tests.identity.waiting import until
from tests.support.deployment import (
    CACHED_PICO_USD,
    COMPLETION_PICO_USD,
    MODEL,
    PROMPT_PICO_USD,
    Deployment,
)
from tests.support.engine import Engine
from tests.support.vllm import NAME
from tollhouse.base.money import PicoUsd, from_decimal_string

ANSWER_TOKENS = 16
HELLO: list[Any] = [{"role": "user", "content": "Say hello."}]
GREEDY: dict[str, Any] = {"temperature": 0, "max_completion_tokens": ANSWER_TOKENS}
WITH_USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    """By what they cost: input does not include cached input."""

    input: int
    cached_input: int
    output: int

    @property
    def cost_pico_usd(self) -> int:
        return (
            self.input * PROMPT_PICO_USD
            + self.cached_input * CACHED_PICO_USD
            + self.output * COMPLETION_PICO_USD
        )

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            input=self.input + other.input,
            cached_input=self.cached_input + other.cached_input,
            output=self.output + other.output,
        )

    def __sub__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            input=self.input - other.input,
            cached_input=self.cached_input - other.cached_input,
            output=self.output - other.output,
        )


NO_TOKENS = Tokens(input=0, cached_input=0, output=0)


def tokens_of(usage: CompletionUsage | None) -> Tokens:
    """As the caller was told."""
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    return Tokens(
        input=usage.prompt_tokens - cached, cached_input=cached, output=usage.completion_tokens
    )


def counted_by(engine: Engine) -> Tokens:
    """As the engine counts all that it has done since it started."""
    metrics = {name: int(value) for name, value in engine.metrics().items()}
    if "vllm:prompt_tokens_total" in metrics:
        cached = metrics["vllm:prefix_cache_hits_total"]
        return Tokens(
            input=metrics["vllm:prompt_tokens_total"] - cached,
            cached_input=cached,
            output=metrics["vllm:generation_tokens_total"],
        )
    return Tokens(
        input=metrics["llamacpp:prompt_tokens_total"],
        cached_input=metrics["llamacpp:prompt_tokens_cached_total"],
        output=metrics["llamacpp:tokens_predicted_total"],
    )


def endless(engine: Engine) -> dict[str, int]:
    """A bias against the token that ends an answer."""
    end = "<|im_end|>"
    (token,) = engine.post("/tokenize", {"model": NAME, "prompt": end, "content": end})["tokens"]
    return {str(token): -100}


def text_of_whole(answer: Any) -> str:  # noqa: ANN401 - what the SDK returns
    return answer.choices[0].message.content


def text_of(chunks: list[Any]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def request_id_of(completion_id: str) -> UUID:
    """The gateway's request, from the ID of its completion."""
    return UUID(completion_id.removeprefix("chatcmpl-"))


class EngineCustomer:
    """A customer at engines that nobody else uses, from now on."""

    def __init__(self, deployment: Deployment, *engines: Engine) -> None:
        self.deployment = deployment
        self.engine = engines[0]
        self._engines = engines
        self._before = self._counted()

    async def ask(self, **fields: Any) -> Any:  # noqa: ANN401 - what the SDK returns
        """A whole answer."""
        async with self._client() as client:
            completions: Any = client.chat.completions
            return await completions.create(model=MODEL, **fields)

    async def stream(self, **fields: Any) -> list[Any]:  # noqa: ANN401 - what the SDK returns
        """The chunks of an answer, the last one with its usage."""
        async with self._client() as client:
            completions: Any = client.chat.completions
            asked = {"model": MODEL, "stream": True, **WITH_USAGE, **fields}
            stream = await completions.create(**asked)
            return [chunk async for chunk in stream]

    async def parse(self, **fields: Any) -> Any:  # noqa: ANN401 - what the SDK returns
        """A whole answer that the SDK reads as a type."""
        async with self._client() as client:
            completions: Any = client.chat.completions
            return await completions.parse(model=MODEL, **fields)

    async def follow(self, **fields: Any) -> tuple[list[Any], Any]:  # noqa: ANN401 - what the SDK returns
        """The events of the SDK's helper for streams, and its final completion."""
        async with self._client() as client:
            completions: Any = client.chat.completions
            async with completions.stream(model=MODEL, **WITH_USAGE, **fields) as events:
                told = [event async for event in events]
                return told, await events.get_final_completion()

    async def blocking(self, work: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - what the SDK returns
        """The blocking client must not block the loop that the gateway runs on."""

        def run() -> Any:  # noqa: ANN401 - what the SDK returns
            with OpenAI(**self._options()) as client:
                return work(client.chat.completions)

        return await asyncio.to_thread(run)

    def _client(self) -> AsyncOpenAI:
        return AsyncOpenAI(**self._options())

    def _options(self) -> dict[str, Any]:
        return {
            "api_key": self.deployment.key.value,
            "base_url": f"{self.deployment.gateway.base_url}/v1",
            "max_retries": 0,
            "_strict_response_validation": True,
        }

    async def check(self, *answers: Any) -> None:  # noqa: ANN401 - completions, or last chunks of streams
        """All that this customer asked: each answer by itself, then their sum by the engines."""
        told = NO_TOKENS
        for answer in answers:
            tokens = tokens_of(answer.usage)
            request_id = request_id_of(answer.id)
            await self._check_entry(request_id, tokens)
            await self._check_record(request_id, tokens)
            told += tokens
        credit = await self.deployment.settled(len(answers))
        assert credit.settled_pico_usd == told.cost_pico_usd > 0
        assert await self.used(told.output) == told

    async def used(self, output_tokens: int) -> Tokens:
        """What the engines have counted meanwhile; vLLM counts a moment after it has answered."""

        async def is_counted() -> bool:
            return (self._counted() - self._before).output >= output_tokens

        await until(is_counted)
        return self._counted() - self._before

    def _counted(self) -> Tokens:
        return sum(map(counted_by, self._engines), start=NO_TOKENS)

    async def _check_entry(self, request_id: UUID, tokens: Tokens) -> None:
        entry = await self.entry(request_id)
        assert entry["kind"] == "post"
        assert entry["model"] == MODEL
        assert tokens == Tokens(
            input=entry["input_tokens"],
            cached_input=entry["cached_input_tokens"],
            output=entry["output_tokens"],
        )
        assert entry["input_pico"] == tokens.input * PROMPT_PICO_USD
        assert entry["cached_input_pico"] == tokens.cached_input * CACHED_PICO_USD
        assert entry["output_pico"] == tokens.output * COMPLETION_PICO_USD
        assert entry["posted_pico"] == tokens.cost_pico_usd <= entry["held_pico"]
        assert entry["excess_pico"] == entry["unknown_pico"] == 0

    async def entry(self, request_id: UUID) -> dict[str, Any]:
        """How the ledger resolved a request, once it has."""
        found: dict[str, Any] = {}
        org = self.deployment.org

        async def is_resolved() -> bool:
            rows = await org.database.fetch_all(
                """
                SELECT * FROM ledger_entries
                 WHERE organization_id = $1 AND reservation_id = $2 AND phase = 1
                """,
                org.organization_id,
                request_id,
            )
            for row in rows:
                found.update(row)
            return bool(rows)

        await until(is_resolved)
        return found

    async def _check_record(self, request_id: UUID, tokens: Tokens) -> None:
        record = await self.deployment.record(str(request_id))
        assert record["status"] == 200
        assert record["model"] == MODEL
        assert record["tokens"] == {
            "input": tokens.input,
            "cached_input": tokens.cached_input,
            "output": tokens.output,
        }
        assert from_decimal_string(record["cost"]["value"]) == PicoUsd(tokens.cost_pico_usd)
