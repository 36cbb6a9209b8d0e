"""Records that are spliced between prepared parts are those of the full encoding."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tollhouse.backends.types import UpstreamChunk
from tollhouse.base.ids import RequestId
from tollhouse.contract import completions as wire
from tollhouse.contract.chat import ChatRequest
from tollhouse.inference.chat import ChatEncoder

REQUEST_ID = RequestId(UUID("018f0000-0000-7000-8000-000000000001"))
NOW = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
CHOICES = 3
TRICKY = ('""', '"choices":[', '{"index":0,"delta":{"content":', "\n\n", "\\", "\u2028", "%b%d")
"""Texts that look like the parts between which a record is spliced."""
TIERS = ("default", "flex", "priority", "unknown")

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(TRICKY)
deltas = st.fixed_dictionaries(
    {}, optional={"content": texts, "refusal": texts, "reasoning": st.none() | texts}
)
choices = st.fixed_dictionaries(
    {"index": st.integers(0, CHOICES - 1), "delta": deltas},
    optional={
        "finish_reason": st.sampled_from(("stop", "length", None)),
        "logprobs": st.none() | st.dictionaries(texts, st.integers()),
    },
)
chunks = st.fixed_dictionaries(
    {"choices": st.lists(choices, max_size=2)},
    optional={"service_tier": st.sampled_from(TIERS), "system_fingerprint": st.just("fp_1")},
)


class FullEncoding:
    """Encodes every record of a stream as one object."""

    def __init__(self, request: ChatRequest, first: Sequence[UpstreamChunk]) -> None:
        self._request = request
        self._fingerprint = "fp_1" if any(chunk.system_fingerprint for chunk in first) else None
        self._tier: str | None = None
        for chunk in first:
            self._see_tier(chunk.service_tier if chunk.service_tier != "unknown" else None)

    def opening(self) -> bytes:
        delta = wire.Delta(role="assistant", content="")
        return b"".join(self._record(index, delta) for index in range(CHOICES))

    def records(self, chunk: UpstreamChunk) -> bytes:
        if chunk.service_tier is not None:
            self._tier = None
            self._see_tier(chunk.service_tier if chunk.service_tier != "unknown" else None)
        found = b""
        for choice in chunk.choices:
            reasoning = choice.delta.reasoning or UNSET
            delta = wire.Delta(
                content=choice.delta.content or UNSET,
                refusal=choice.delta.refusal or UNSET,
                reasoning=reasoning,
                reasoning_content=reasoning,
            )
            if delta != wire.Delta() or choice.logprobs is not None:
                found += self._record(choice.index, delta, logprobs=choice.logprobs)
            if choice.finish_reason is not None:
                end = choice.finish_reason
                found += self._record(choice.index, wire.Delta(), finish_reason=end)
        return found

    def _see_tier(self, tier: str | None) -> None:
        self._tier = tier or self._tier

    def _record(self, index: int, delta: wire.Delta, **fields: Any) -> bytes:  # noqa: ANN401 - of a choice
        options = self._request.stream_options
        chunk = wire.ChatChunk(
            id=f"chatcmpl-{REQUEST_ID.hex}",
            created=int(NOW.timestamp()),
            model=self._request.model,
            service_tier=self._tier,
            system_fingerprint=self._fingerprint,
            choices=[wire.ChunkChoice(index=index, delta=delta, **fields)],
            usage=None if options and options.include_usage else UNSET,
        )
        return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


@given(
    model=st.sampled_from(("example/model-a", *TRICKY)),
    includes_usage=st.booleans(),
    first=st.lists(chunks, max_size=1),
    rest=st.lists(chunks, max_size=4),
)
def test_a_spliced_record_is_that_of_the_full_encoding(
    *,
    model: str,
    includes_usage: bool,
    first: list[dict[str, Any]],
    rest: list[dict[str, Any]],
) -> None:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Hi"}],
        "n": CHOICES,
        "stream": True,
        "stream_options": {"include_usage": includes_usage},
    }
    request = msgspec.convert(body, ChatRequest)
    encoder = ChatEncoder(request, REQUEST_ID, NOW)
    begun, later = msgspec.convert((first, rest), tuple[list[UpstreamChunk], list[UpstreamChunk]])
    full = FullEncoding(request, begun)

    assert encoder.opening(begun) == full.opening()
    for chunk in (*begun, *later):
        assert encoder.records([chunk]) == full.records(chunk)
