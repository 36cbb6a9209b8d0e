"""Answers of the test upstream. They are deterministic: tokens are words of a fixed text."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Any, Final, Literal

from msgspec import UNSET

from tests.upstream.asked import ChatAsked
from tests.upstream.scripts import ScriptedCall, UpstreamScript
from tollhouse.contract.bounds import FreeObject
from tollhouse.trial import agent_task
from tollhouse.trial.chat import prompt_tokens
from tollhouse.trial.engine import TOKEN, WORDS
from tollhouse.trial.schemas import example

REASONING_TOKENS: Final = 4
"""The tokens of reasoning in an answer, if the request asks for reasoning."""
CITATION: Final[FreeObject] = {
    "type": "url_citation",
    "url_citation": {
        "start_index": 0,
        "end_index": 3,
        "title": "Tolls",
        "url": "https://example.com/tolls",
    },
}

Kind = Literal["reasoning", "content", "refusal", "tool_call", "function_call"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Consecutive tokens of one kind. Those of a call are its arguments, and `name` is its name."""

    kind: Kind
    tokens: Sequence[str]
    name: str = ""
    extra: FreeObject = field(default_factory=dict[str, Any])
    """Further members of a call."""

    @property
    def text(self) -> str:
        """The tokens as one text."""
        return "".join(self.tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptedAnswer:
    """An answer, whose choices are all equal."""

    asked: ChatAsked
    script: UpstreamScript
    runs: Sequence[Run]
    finish_reason: str

    @property
    def choices(self) -> int:
        """The number of choices."""
        return self.asked.n or 1

    @property
    def choice_tokens(self) -> int:
        """The tokens of one choice."""
        return sum(len(run.tokens) for run in self.runs)

    @property
    def reasoning_tokens(self) -> int:
        """The tokens of one choice that are reasoning."""
        return sum(len(run.tokens) for run in self.runs if run.kind == "reasoning")

    @property
    def annotations(self) -> list[FreeObject]:
        """One citation if the request asks for a web search, else none."""
        return [] if self.asked.web_search_options is None else [CITATION]


def answer_to(asked: ChatAsked, script: UpstreamScript, *, tokens_default: int) -> ScriptedAnswer:
    """Return the answer to a request, cut at the bound on output tokens."""
    runs = list(_runs(asked, script, tokens_default))
    bound = asked.output_tokens_max
    is_cut = bound is not None and sum(len(run.tokens) for run in runs) > bound
    shortened = runs if bound is None else list(_shortened(runs, bound))
    finish_reason = script.finish_reason or ("length" if is_cut else _finish_reason(runs))
    return ScriptedAnswer(asked=asked, script=script, runs=shortened, finish_reason=finish_reason)


def usage(answer: ScriptedAnswer, *, completion_tokens: int, reasoning_tokens: int) -> Any:  # noqa: ANN401 - a script may send anything
    """Return the usage object: exact, unless the script replaces it."""
    script = answer.script
    if script.usage is None or isinstance(script.usage, str):
        return script.usage
    prompt = prompt_tokens(answer.asked.messages)
    exact: FreeObject = {
        "prompt_tokens": prompt,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt + completion_tokens,
    }
    if script.cached_tokens is not None:
        exact["prompt_tokens_details"] = {"cached_tokens": script.cached_tokens}
    if script.cache_write_tokens is not None:
        written = {"cache_write_tokens": script.cache_write_tokens}
        exact["prompt_tokens_details"] = exact.get("prompt_tokens_details", {}) | written
    if reasoning_tokens:
        exact["completion_tokens_details"] = {"reasoning_tokens": reasoning_tokens}
    return exact if script.usage is UNSET else exact | script.usage


def total_usage(answer: ScriptedAnswer) -> Any:  # noqa: ANN401 - a script may send anything
    """Return the usage of all choices together. The prompt counts once."""
    return usage(
        answer,
        completion_tokens=answer.choice_tokens * answer.choices,
        reasoning_tokens=answer.reasoning_tokens * answer.choices,
    )


def text_of(tokens: int) -> str:
    """Return a text of so many tokens."""
    return "".join(_words(tokens))


def _runs(asked: ChatAsked, script: UpstreamScript, tokens_default: int) -> Iterator[Run]:
    thought = REASONING_TOKENS if asked.wants_reasoning else 0
    if script.reasoning_tokens is not None:
        thought = script.reasoning_tokens
    if thought:
        yield Run(kind="reasoning", tokens=_words(thought))
    calls = list(_calls(asked, script))
    if calls:
        yield from calls
        return
    kind = "refusal" if script.refuses else "content"
    yield Run(kind=kind, tokens=_content_tokens(asked, script, tokens_default))


def _content_tokens(asked: ChatAsked, script: UpstreamScript, tokens_default: int) -> Sequence[str]:
    if script.text is not None:
        return TOKEN.findall(script.text)
    if script.tokens is not None:
        return _words(script.tokens, script.word_characters)
    if (played := agent_task.closing_text(asked)) is not None:
        return TOKEN.findall(played)
    wanted = asked.response_format or {}
    match wanted.get("type"):
        case "json_schema":
            named: FreeObject = wanted.get("json_schema") or {}
            return TOKEN.findall(_fitting(named.get("schema") or {}))
        case "json_object":
            return TOKEN.findall(json.dumps({"toll": "paid"}))
        case _:
            return _words(tokens_default)


def _calls(asked: ChatAsked, script: UpstreamScript) -> Iterator[Run]:
    """Yield the calls that the script, a forced tool choice or an agent's task asks for."""
    played = None if script.has_content else agent_task.next_call(asked)
    scripted = script.calls or ((ScriptedCall(**played._asdict()),) if played else ())
    for call in scripted:
        tokens = TOKEN.findall(call.arguments)
        extra = {"extra_content": call.extra_content} if call.extra_content else {}
        yield Run(kind="tool_call", name=call.name, tokens=tokens, extra=extra)
    if scripted:
        return
    tools: list[FreeObject] = [tool.get("function") or {} for tool in asked.tools or []]
    is_forced = asked.tool_choice == "required" or isinstance(asked.tool_choice, dict)
    for index in range(script.tool_calls or int(bool(tools) and is_forced)):
        yield _call("tool_call", _chosen(tools, asked.tool_choice, index))
    if asked.functions and isinstance(asked.function_call, dict):
        yield _call("function_call", _chosen(asked.functions, asked.function_call, 0))


def _chosen(defined: list[FreeObject], choice: str | FreeObject | None, index: int) -> FreeObject:
    """Return the function that the choice names, else the one at this index, in turns."""
    if isinstance(choice, dict):
        name = (choice.get("function") or choice).get("name")
        defined = [function for function in defined if function.get("name") == name] or defined
    return defined[index % len(defined)] if defined else {"name": "pay"}


def _call(kind: Kind, function: FreeObject) -> Run:
    arguments = _fitting(function.get("parameters") or {})
    return Run(kind=kind, name=str(function.get("name")), tokens=TOKEN.findall(arguments))


def _fitting(schema: FreeObject) -> str:
    return json.dumps(example(schema))


def _words(count: int, characters: int | None = None) -> Sequence[str]:
    known = WORDS if characters is None else [" " + "x" * characters]
    words = list(islice(cycle(known), count))
    # A text does not begin with a space.
    words[:1] = [word.lstrip() for word in words[:1]]
    return words


def _shortened(runs: list[Run], bound: int) -> Iterator[Run]:
    left = bound
    for run in runs:
        yield replace(run, tokens=run.tokens[:left])
        left -= len(run.tokens)
        if left <= 0:
            return


def _finish_reason(runs: list[Run]) -> str:
    match runs[-1].kind:
        case "tool_call":
            return "tool_calls"
        case "function_call":
            return "function_call"
        case _:
            return "stop"
