"""Requests to the test upstream: OpenAI's API with additions of vLLM and llama.cpp."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from tollhouse.contract.bounds import COMPLETIONS_MAX, FreeObject

MODEL: Final = "test"


class SentMessage(Struct, frozen=True):
    """A message. Content parts without a text are ignored."""

    role: str = "user"
    content: str | list[FreeObject] | None = None
    tool_calls: list[FreeObject] | None = None

    @property
    def text(self) -> str:
        """The whole text, with one line for each part."""
        match self.content:
            case None:
                return ""
            case str(text):
                return text
            case parts:
                return "\n".join(_text(part) for part in parts)


class StreamOptions(Struct, frozen=True):
    """Options of a stream. `continuous_usage_stats` is vLLM's, and needs `include_usage`."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class ChatAsked(Struct, frozen=True):
    """Body of POST /v1/chat/completions."""

    messages: list[SentMessage]
    model: str = MODEL
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: Annotated[int, Meta(ge=1, le=COMPLETIONS_MAX)] | None = None
    tools: list[FreeObject] | None = None
    tool_choice: str | FreeObject | None = None
    functions: list[FreeObject] | None = None
    function_call: str | FreeObject | None = None
    response_format: FreeObject | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=100)] | None = None
    prompt_logprobs: Annotated[int, Meta(ge=0, le=100)] | None = None
    reasoning: FreeObject | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: FreeObject | None = None
    web_search_options: FreeObject | None = None

    @property
    def output_tokens_max(self) -> int | None:
        """The bound on output tokens, under either of its names."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def includes_usage_always(self) -> bool:
        """Whether every record of a stream has usage."""
        return self.includes_usage and bool(
            self.stream_options and self.stream_options.continuous_usage_stats
        )

    @property
    def wants_reasoning(self) -> bool:
        """Whether the request asks for reasoning, in any of three ways."""
        return (
            self.reasoning_effort not in (None, "none")
            or bool(self.reasoning)
            or bool((self.chat_template_kwargs or {}).get("enable_thinking"))
        )


class CountAsked(Struct, frozen=True):
    """Body of POST /v1/messages/count_tokens, of Anthropic's API."""

    messages: list[SentMessage]
    system: str | list[FreeObject] | None = None

    def prompt_tokens(self) -> int:
        """Return the count of a chat with the same messages."""
        system = [] if self.system is None else [SentMessage("system", self.system)]
        return prompt_tokens([*system, *self.messages])


class TokenizeAsked(Struct, frozen=True):
    """Body of POST /tokenize: vLLM's `prompt` or `messages`, llama.cpp's `content`."""

    prompt: str | None = None
    messages: list[SentMessage] | None = None
    content: str | None = None

    def tokens(self) -> int:
        """Return the number of words, plus one for each message."""
        if self.messages is not None:
            return prompt_tokens(self.messages)
        return len((self.prompt or self.content or "").split())


def prompt_tokens(messages: Iterable[SentMessage]) -> int:
    """Return the number of words, plus one for each message."""
    return sum(1 + len(message.text.split()) for message in messages)


def last_words(messages: Iterable[SentMessage]) -> str:
    """Return the text of the last user message, or an empty text."""
    sent = [message for message in messages if message.role == "user"]
    return sent[-1].text if sent else ""


def _text(part: FreeObject) -> str:
    text: Any = part.get("text")
    return text if isinstance(text, str) else ""
