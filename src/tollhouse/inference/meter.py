"""Count what a call used, from the reports of the engine and from the text itself.

Text that no engine counted has one token for four characters, rounded up. Streams and complete
answers are counted by the same functions, so that the same text has the same count in both. No
tokenizer runs inside the gateway. Unknown usage is a state, not zero.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import Struct

from tollhouse.backends.types import (
    FreeObject,
    FunctionDelta,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
    UpstreamDelta,
    UpstreamMessage,
    UpstreamUsage,
)
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.inference.endpoint import Finish
from tollhouse.ledger import pricing
from tollhouse.ledger.pricing import TokenBound, Usage

_FUNCTION_CALL = -1
"""The index of a choice's function call; tool calls have indexes from 0 on."""


class MeteredUsage(Struct, frozen=True, kw_only=True):
    """What a call is charged for.

    `usage` lies within the bound that was held for. `used` is the same before the bound cut it:
    the operator pays the difference. `is_estimated` says that the gateway counted part of it,
    because the engine did not report it or reported less than it had sent. If the output is
    reported, it may be less than what the gateway counted by the length of the text.
    """

    usage: Usage
    used: Usage
    is_estimated: bool
    is_output_reported: bool


def finish_of(metered: MeteredUsage, *, at: datetime) -> Finish:
    """Return the end of an answer as encoders write it."""
    return Finish(usage=metered.usage, is_estimated=metered.is_estimated, at=at)


class Meter:
    """Counts everything that comes from the backend, before the caller receives it.

    `has_continuous_usage` says that the engine reports its usage with all text that it sends.
    """

    def __init__(
        self, *, prompt_characters: int, bound: TokenBound, has_continuous_usage: bool = False
    ) -> None:
        self._prompt_characters = prompt_characters
        self._bound = bound
        self._has_continuous_usage = has_continuous_usage
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
        self.has_whole_answer = False

    def answer_ended(self) -> None:
        """The backend has sent all that was requested, whether or not the caller receives it."""
        self.has_whole_answer = True

    @property
    def has_usage(self) -> bool:
        """Whether the engine reported its output; an absurd report did not get this far.

        A report of the prompt alone does not tell what hidden reasoning cost.
        """
        if self._total is not None and self._total.completion_tokens is not None:
            return True
        return any(each.completion_tokens is not None for each in self._by_choice.values())

    @property
    def has_report(self) -> bool:
        """Whether the engine reported any usage, if only that of the prompt."""
        return self._total is not None or bool(self._by_choice)

    @property
    def has_output(self) -> bool:
        """Whether anything was generated."""
        return self._output.choices > 0 or self._has_other_output

    @property
    def is_finished(self) -> bool:
        """Whether every choice that began has a finish reason."""
        return bool(self._finished) and self._finished >= self._begun

    def counted_output_tokens(self) -> int:
        """Count all output so far, whatever the engine reports; at most the bound.

        Log probabilities tell the number of their tokens, whatever text these have.
        """
        bound = self._bound.output_tokens * self._bound.completions
        return max(self._output.tokens, min(self._logprob_tokens, bound))

    def see(self, chunks: Sequence[UpstreamChunk]) -> None:
        """Count the records of a stream. A usage replaces an earlier one: engines count up.

        A usage in a record with a choice is that of the choice alone, as vLLM reports it.
        """
        for chunk in chunks:
            for choice in chunk.choices:
                self._count(choice)
            usage = chunk.usage
            if usage is None and chunk.timings is not None and self._has_continuous_usage:
                usage = chunk.timings.usage()
            if usage is not None:
                self._report(usage, chunk.choices[0].index if chunk.choices else None)

    def see_completion(self, completion: UpstreamCompletion) -> None:
        """Count a complete answer and keep its reported usage."""
        self._total = completion.usage
        for choice in completion.choices:
            self._output.add(choice.index, message_characters(choice.message))
            if choice.logprobs is not None:
                self._logprob_tokens += logprob_tokens(choice.logprobs)

    def usage(self, *, is_complete: bool) -> MeteredUsage:
        """Return the usage to charge: the reported one, or the counted one without a report.

        It is the larger of both, unless the report came at the end of a complete answer, or
        with the last text of an engine that reports continuously.
        """
        reports = [*self._by_choice.values(), *([self._total] if self._total else ())]
        prompt_tokens = cached_tokens = cache_write_tokens = 0
        for report in reports:
            prompt_tokens = max(prompt_tokens, report.prompt_tokens)
            if (details := report.prompt_tokens_details) is not None:
                cached_tokens = max(cached_tokens, details.cached_tokens or 0)
                cache_write_tokens = max(cache_write_tokens, details.cache_write_tokens or 0)
        reported = self._reported_output()
        completion_tokens = self._output_to_charge(reported, is_complete=is_complete)
        is_prompt_known, is_output_reported = prompt_tokens > 0, completion_tokens == reported
        prompt_tokens = prompt_tokens or self._estimated_prompt()
        if cached_tokens or cache_write_tokens:
            cached_tokens = min(cached_tokens, prompt_tokens)
            cache_write_tokens = min(cache_write_tokens, prompt_tokens - cached_tokens)
        used = Usage(
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cached_tokens=cached_tokens,
            cache_write_tokens=cache_write_tokens,
            reasoning_tokens=self._reported_reasoning(),
            images=self._bound.images,
        )
        return MeteredUsage(
            usage=pricing.within(used, self._bound),
            used=used,
            is_estimated=not is_prompt_known or not is_output_reported,
            is_output_reported=is_output_reported,
        )

    def _output_to_charge(self, reported: int | None, *, is_complete: bool) -> int:
        if reported is None:
            return self.counted_output_tokens()
        if (is_complete or self._has_continuous_usage) and not self._unreported_choices:
            return reported
        return max(reported, self.counted_output_tokens())

    def _report(self, usage: UpstreamUsage, choice: int | None) -> None:
        """Keep a report of one choice or of all. One without output never replaces one with it."""
        tells_output = usage.completion_tokens is not None
        if choice is not None:
            if tells_output or choice not in self._by_choice:
                self._by_choice[choice] = usage
            if tells_output:
                if len(self._begun) > len(self._by_choice):
                    # An earlier report of all choices no longer covers the others.
                    self._unreported_choices |= self._begun - self._by_choice.keys()
                self._unreported_choices.discard(choice)
        elif tells_output:
            self._total = usage
            self._by_choice.clear()
            self._unreported_choices.clear()
        else:
            self._total = self._total or usage

    def _reported_output(self) -> int | None:
        """Return the reported output tokens, or None if no report has them.

        A report of fewer tokens than there are choices with text is not trusted.
        """
        total = self._total.completion_tokens if self._total else None
        has_report, of_choices = total is not None, 0
        for report in self._by_choice.values():
            has_report = has_report or report.completion_tokens is not None
            of_choices += report.completion_tokens or 0
        reported = max(of_choices, total or 0)
        return reported if has_report and reported >= self._output.choices else None

    def _reported_reasoning(self) -> int:
        of_choices = sum(map(_reasoned, self._by_choice.values()))
        return max(of_choices, _reasoned(self._total) if self._total else 0)

    def _estimated_prompt(self) -> int:
        return min(tokens_of(self._prompt_characters), self._bound.prompt_tokens)

    def _count(self, choice: UpstreamChunkChoice) -> None:
        index, delta = choice.index, choice.delta
        self._begun.add(index)
        if choice.finish_reason is not None:
            self._finished.add(index)
        characters = delta_characters(delta)
        if choice.logprobs is not None and (tokens := logprob_tokens(choice.logprobs)):
            self._logprob_tokens += tokens
            self._unreported_choices.add(index)
        if choice.logprobs is not None or delta.annotations or delta.tool_calls:
            self._has_other_output = True
        if delta.tool_calls is not None or delta.function_call is not None:
            characters += self._count_calls(choice)
        if characters:
            self._output.add(index, characters)
            self._unreported_choices.add(index)

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


def _reasoned(usage: UpstreamUsage) -> int:
    details = usage.completion_tokens_details
    return (details.reasoning_tokens or 0) if details else 0


CHARACTERS_PER_TOKEN = 4
"""Few tokenizers make longer tokens of ordinary text."""
_TEXT_MEMBERS = ("text", "refusal")
"""The members of a content part that hold text."""
_CALL_MEMBERS = ("name", "arguments", "input")
"""What a model writes in a call: functions have arguments, custom tools have an input."""
_CALLED = ("function", "custom")
_SHORT_MEMBERS = ("id", "type", "strict")
"""Members of tools and calls that are no text."""


def tokens_of(characters: int) -> int:
    """Return the estimated tokens of a text: at least one unless it is empty."""
    return -(-characters // CHARACTERS_PER_TOKEN)


class OutputCount:
    """Running count of the output tokens of one answer, by choice.

    A choice never counts more than `choice_tokens_max`, all together never more than
    `tokens_max`: an estimate must not exceed what the caller allowed.
    """

    def __init__(self, *, choice_tokens_max: int, tokens_max: int) -> None:
        self._choice_tokens_max = choice_tokens_max
        self._tokens_max = tokens_max
        self._characters: dict[int, int] = {}

    @property
    def tokens(self) -> int:
        """The tokens of all text so far, at most `tokens_max`."""
        counted = 0
        for characters in self._characters.values():
            counted += min(tokens_of(characters), self._choice_tokens_max)
        return min(counted, self._tokens_max)

    @property
    def choices(self) -> int:
        """The number of choices with text."""
        return len(self._characters)

    def add(self, choice: int, characters: int) -> None:
        """Count more text of a choice. Runs for every record of a stream."""
        if characters:
            self._characters[choice] = self._characters.get(choice, 0) + characters


def delta_characters(delta: UpstreamDelta) -> int:
    """Count the text that a record adds to a choice, without the calls in it."""
    characters = len(delta.content or "")
    if reasoning := delta.reasoning or delta.reasoning_content:
        characters += len(reasoning)
    if delta.refusal:
        characters += len(delta.refusal)
    return characters


def logprob_tokens(logprobs: Any) -> int:  # noqa: ANN401 - as the engine has them
    """Count the tokens that log probabilities name."""
    found = cast("FreeObject", logprobs).get("content") if isinstance(logprobs, dict) else None
    return len(cast("list[Any]", found)) if isinstance(found, list) else 0


def function_characters(piece: FunctionDelta, *, has_name: bool) -> int:
    """Count a piece of a call. A name counts once: some engines repeat it with every piece."""
    name = "" if has_name else piece.name or ""
    return len(name) + len(piece.arguments or "")


def message_characters(message: UpstreamMessage) -> int:
    """Count the text of a whole answer of one choice."""
    content = message.content
    characters = len(content) if isinstance(content, str) else _content_characters(content)
    if text := message.reasoning or message.reasoning_content:
        characters += len(text)
    if message.refusal:
        characters += len(message.refusal)
    if message.tool_calls or message.function_call:
        characters += _calls_characters(message.tool_calls, message.function_call)
    return characters


def prompt_characters(request: ChatRequest) -> int:
    """Count the text of the messages and tools of a request, without the data of its images."""
    tools = request.tools or request.functions or ()
    return sum(map(_sent_characters, request.messages)) + sum(map(_free_characters, tools))


def _sent_characters(message: ChatMessage) -> int:
    content = message.content
    characters = len(content) if isinstance(content, str) else _content_characters(content or None)
    if text := message.reasoning or message.reasoning_content:
        characters += len(text)
    if message.name:
        characters += len(message.name)
    if message.tool_calls:
        characters += sum(map(_free_characters, message.tool_calls))
    if message.function_call:
        characters += _free_characters(message.function_call)
    return characters


def _content_characters(content: str | list[FreeObject] | None) -> int:
    if isinstance(content, list):
        return sum(map(_part_characters, content))
    return len(content or "")


def _part_characters(part: FreeObject) -> int:
    text = part.get("text")
    if type(text) is str and "refusal" not in part:
        return len(text)
    return _members_characters(part, _TEXT_MEMBERS)


def _calls_characters(calls: list[FreeObject] | None, function_call: FreeObject | None) -> int:
    called: list[Any] = [call.get("function") or call.get("custom") for call in calls or ()]
    called.append(function_call)
    return sum(_members_characters(call, _CALL_MEMBERS) for call in called if call)


def _free_characters(sent: Any) -> int:  # noqa: ANN401 - free-form
    """Count a tool or an earlier call. Templates show it to the model as JSON."""
    if not isinstance(sent, dict):
        return _characters(sent)
    return sum(
        _free_characters(value) if name in _CALLED else _characters(value)
        for name, value in cast("FreeObject", sent).items()
        if name not in _SHORT_MEMBERS
    )


def _members_characters(value: Any, names: Iterable[str]) -> int:  # noqa: ANN401 - free-form
    if not isinstance(value, dict):
        return 0
    members = cast("FreeObject", value)
    return sum(_characters(members.get(name)) for name in names)


def _characters(value: Any) -> int:  # noqa: ANN401 - free-form
    """Count a string as it is, and an object as the JSON that callers read."""
    if isinstance(value, str):
        return len(value)
    return len(msgspec.json.encode(value)) if value else 0
