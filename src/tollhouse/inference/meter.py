"""What a call used, as far as it is known at any moment. Unknown usage is a state, not a zero."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tollhouse.backends.types import (
    FunctionDelta,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
    UpstreamUsage,
)
from tollhouse.inference.surface import Finish
from tollhouse.inference.text_tokens import (
    OutputCount,
    delta_characters,
    function_characters,
    logprob_tokens,
    message_characters,
    tokens_of,
)
from tollhouse.ledger import pricing
from tollhouse.ledger.pricing import TokenBound, Usage

_FUNCTION_CALL = -1
"""The place of a choice's only function call; tool calls have their own from 0 on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeteredUsage:
    """What a call is charged for.

    `usage` lies within the bound that was held for. `used` is the same before the bound cut it:
    the operator pays the difference. `is_estimated` says that the gateway counted part of it,
    because the engine did not report it or reported less than it had sent.
    """

    usage: Usage
    used: Usage
    is_estimated: bool


def finish_of(metered: MeteredUsage, *, at: datetime) -> Finish:
    """Return the end of an answer as renderings show it."""
    return Finish(usage=metered.usage, is_estimated=metered.is_estimated, at=at)


class Meter:
    """Sees everything that comes from the backend, before the caller does."""

    def __init__(self, *, prompt_characters: int, bound: TokenBound) -> None:
        self._prompt_characters = prompt_characters
        self._bound = bound
        self._output = OutputCount(
            choice_tokens_max=bound.output_tokens,
            tokens_max=bound.output_tokens * bound.completions,
        )
        self._named_calls: set[tuple[int, int]] = set()
        self._total: UpstreamUsage | None = None
        self._by_choice: dict[int, UpstreamUsage] = {}
        self._unreported_choices: set[int] = set()
        self._has_other_output = False
        self._begun: set[int] = set()
        self._finished: set[int] = set()
        self._logprob_tokens = 0

    @property
    def has_usage(self) -> bool:
        """Whether the engine reported any usage; an absurd report did not get this far."""
        return self._total is not None or bool(self._by_choice)

    @property
    def has_output(self) -> bool:
        """Whether anything was generated."""
        return self._output.choices > 0 or self._has_other_output

    @property
    def is_finished(self) -> bool:
        """Whether every choice that began has told why it ended."""
        return bool(self._finished) and self._finished >= self._begun

    def counted_output_tokens(self) -> int:
        """Count all output so far, whatever the engine reports; at most the bound.

        Log probabilities tell the number of their tokens, whatever text these have.
        """
        bound = self._bound.output_tokens * self._bound.completions
        return max(self._output.tokens, min(self._logprob_tokens, bound))

    def see(self, chunks: Sequence[UpstreamChunk]) -> None:
        """Records of a stream. A usage replaces an earlier one, because engines count up.

        One that comes with a choice is that choice's alone, as vLLM tells it.
        """
        for chunk in chunks:
            for choice in chunk.choices:
                self._count(choice)
            if chunk.usage is not None:
                self._report(chunk.usage, chunk.choices[0].index if chunk.choices else None)

    def see_completion(self, completion: UpstreamCompletion) -> None:
        """An answer that came whole, with its usage at its end."""
        self._total = completion.usage
        for choice in completion.choices:
            self._output.add(choice.index, message_characters(choice.message))
            self._logprob_tokens += logprob_tokens(choice.logprobs)

    def usage(self, *, is_complete: bool) -> MeteredUsage:
        """Return what to charge: what is reported, and what is counted where no report tells it.

        The larger of both, unless the report came at the end of a complete answer.
        """
        reports = [*self._by_choice.values(), *([self._total] if self._total else ())]
        prompt_tokens = max((report.prompt_tokens for report in reports), default=0)
        reported = self._reported_output()
        completion_tokens = self._output_to_charge(reported, is_complete=is_complete)
        used = Usage(
            prompt_tokens=prompt_tokens or self._estimated_prompt(),
            completion_tokens=completion_tokens,
            cached_tokens=max(map(_cached, reports), default=0),
            reasoning_tokens=self._reported_reasoning(),
            images=self._bound.images,
        )
        return MeteredUsage(
            usage=pricing.within(used, self._bound),
            used=used,
            is_estimated=prompt_tokens == 0 or completion_tokens != reported,
        )

    def _output_to_charge(self, reported: int | None, *, is_complete: bool) -> int:
        if reported is None:
            return self.counted_output_tokens()
        if is_complete and not self._unreported_choices:
            return reported
        return max(reported, self.counted_output_tokens())

    def _report(self, usage: UpstreamUsage, choice: int | None) -> None:
        """Keep a report of one choice, or of all. One without output replaces none that has it."""
        tells_output = usage.completion_tokens is not None
        if choice is not None:
            if tells_output or choice not in self._by_choice:
                self._by_choice[choice] = usage
            if tells_output:
                self._unreported_choices.discard(choice)
        elif tells_output:
            self._total = usage
            self._by_choice.clear()
            self._unreported_choices.clear()
        else:
            self._total = self._total or usage

    def _reported_output(self) -> int | None:
        """None where no report tells it, or tells fewer tokens than there are choices with text."""
        told = [one.completion_tokens for one in self._by_choice.values()]
        of_choices = sum(tokens or 0 for tokens in told)
        of_all = self._total.completion_tokens if self._total else None
        if of_all is None and all(tokens is None for tokens in told):
            return None
        reported = max(of_choices, of_all or 0)
        return reported if reported >= self._output.choices else None

    def _reported_reasoning(self) -> int:
        of_choices = sum(map(_reasoned, self._by_choice.values()))
        return max(of_choices, _reasoned(self._total) if self._total else 0)

    def _estimated_prompt(self) -> int:
        return min(tokens_of(self._prompt_characters), self._bound.prompt_tokens)

    def _count(self, choice: UpstreamChunkChoice) -> None:
        delta = choice.delta
        self._begun.add(choice.index)
        if choice.finish_reason is not None:
            self._finished.add(choice.index)
        characters = delta_characters(delta)
        if choice.logprobs is not None:
            self._logprob_tokens += logprob_tokens(choice.logprobs)
        if choice.logprobs is not None or delta.annotations or delta.tool_calls:
            self._has_other_output = True
        if delta.tool_calls is not None or delta.function_call is not None:
            characters += self._count_calls(choice)
        if characters:
            self._output.add(choice.index, characters)
            self._unreported_choices.add(choice.index)

    def _count_calls(self, choice: UpstreamChunkChoice) -> int:
        characters = 0
        for call in choice.delta.tool_calls or ():
            if call.function is not None:
                characters += self._count_call((choice.index, call.index), call.function)
        if (function := choice.delta.function_call) is not None:
            characters += self._count_call((choice.index, _FUNCTION_CALL), function)
        return characters

    def _count_call(self, place: tuple[int, int], piece: FunctionDelta) -> int:
        characters = function_characters(piece, has_name=place in self._named_calls)
        if piece.name:
            self._named_calls.add(place)
        return characters


def _cached(usage: UpstreamUsage) -> int:
    details = usage.prompt_tokens_details
    return (details.cached_tokens or 0) if details else 0


def _reasoned(usage: UpstreamUsage) -> int:
    details = usage.completion_tokens_details
    return (details.reasoning_tokens or 0) if details else 0
