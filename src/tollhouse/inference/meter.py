"""What a call used, as far as it is known at any moment. Unknown usage is a state, not a zero."""

from collections.abc import Sequence

import msgspec

from tollhouse.backends.types import (
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
    UpstreamUsage,
)
from tollhouse.ledger.pricing import Usage

CHARACTERS_PER_TOKEN = 4
"""For counting what no engine counted: few tokenizers make longer tokens of ordinary text."""


class Meter:
    """Sees everything that comes from the backend, before the caller does."""

    def __init__(self, *, prompt_characters: int, images: int) -> None:
        self._prompt_characters = prompt_characters
        self._images = images
        self._total: UpstreamUsage | None = None
        self._by_choice: dict[int, UpstreamUsage] = {}
        self._output_characters = 0
        self._output_records = 0

    @property
    def has_usage(self) -> bool:
        """Whether the engine reported any usage; an absurd report did not get this far."""
        return self._total is not None or bool(self._by_choice)

    @property
    def has_output(self) -> bool:
        """Whether anything was generated."""
        return self._output_records > 0

    def see(self, chunks: Sequence[UpstreamChunk]) -> None:
        """Records of a stream. A usage replaces an earlier one, because engines count up.

        One that comes with a choice is that choice's alone, as vLLM tells it.
        """
        for chunk in chunks:
            if chunk.usage is not None and chunk.choices:
                self._by_choice[chunk.choices[0].index] = chunk.usage
            elif chunk.usage is not None:
                self._total = chunk.usage
            for choice in chunk.choices:
                self._count(choice)

    def see_completion(self, completion: UpstreamCompletion) -> None:
        """An answer that came whole; its text is counted only where nobody else has."""
        self._total = completion.usage
        self._output_records += len(completion.choices)
        if completion.usage is None:
            for choice in completion.choices:
                self._output_characters += len(msgspec.json.encode(choice.message))

    def usage(self) -> Usage:
        """As reported; else counted from the text that was seen, at least the prompt."""
        reports = [self._total] if self._total is not None else [*self._by_choice.values()]
        if reports:
            return Usage(
                prompt_tokens=max(report.prompt_tokens for report in reports),
                completion_tokens=sum(report.completion_tokens or 0 for report in reports),
                cached_tokens=max(map(_cached, reports)),
                reasoning_tokens=sum(map(_reasoned, reports)),
                images=self._images,
            )
        counted = -(-self._output_characters // CHARACTERS_PER_TOKEN)
        return Usage(
            prompt_tokens=-(-self._prompt_characters // CHARACTERS_PER_TOKEN),
            completion_tokens=max(counted, self._output_records),
            images=self._images,
        )

    def _count(self, choice: UpstreamChunkChoice) -> None:
        delta = choice.delta
        size = len(delta.content or "") + len(delta.reasoning or delta.reasoning_content or "")
        size += len(delta.refusal or "")
        for call in delta.tool_calls or ():
            if call.function is not None:
                size += len(call.function.name or "") + len(call.function.arguments or "")
        if delta.function_call is not None:
            size += len(delta.function_call.name or "") + len(delta.function_call.arguments or "")
        if size:
            self._output_records += 1
            self._output_characters += size


def _cached(usage: UpstreamUsage) -> int:
    details = usage.prompt_tokens_details
    return (details.cached_tokens or 0) if details else 0


def _reasoned(usage: UpstreamUsage) -> int:
    details = usage.completion_tokens_details
    return (details.reasoning_tokens or 0) if details else 0
