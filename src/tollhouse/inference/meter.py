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
        self._reported: UpstreamUsage | None = None
        self._output_characters = 0
        self._output_records = 0

    @property
    def has_usage(self) -> bool:
        """Whether the engine reported any usage; an absurd report did not get this far."""
        return self._reported is not None

    @property
    def has_output(self) -> bool:
        """Whether anything was generated."""
        return self._output_records > 0

    def see(self, chunks: Sequence[UpstreamChunk]) -> None:
        """Records of a stream; a usage replaces an earlier one, because engines count up."""
        for chunk in chunks:
            if chunk.usage is not None:
                self._reported = chunk.usage
            for choice in chunk.choices:
                self._count(choice)

    def see_completion(self, completion: UpstreamCompletion) -> None:
        """An answer that came whole."""
        if completion.usage is not None:
            self._reported = completion.usage
        for choice in completion.choices:
            self._output_records += 1
            self._output_characters += len(msgspec.json.encode(choice.message))

    def usage(self) -> Usage:
        """As reported; else counted from the text that was seen, at least the prompt."""
        reported = self._reported
        if reported is None:
            counted = -(-self._output_characters // CHARACTERS_PER_TOKEN)
            return Usage(
                prompt_tokens=-(-self._prompt_characters // CHARACTERS_PER_TOKEN),
                completion_tokens=max(counted, self._output_records),
                images=self._images,
            )
        cached = reported.prompt_tokens_details
        reasoned = reported.completion_tokens_details
        return Usage(
            prompt_tokens=reported.prompt_tokens,
            completion_tokens=reported.completion_tokens or 0,
            cached_tokens=(cached.cached_tokens or 0) if cached else 0,
            reasoning_tokens=(reasoned.reasoning_tokens or 0) if reasoned else 0,
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
