"""Chat requests as a scripted engine reads them. Every word of a prompt is a token."""

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


class Chat(Struct, frozen=True):
    """The fields of POST /v1/chat/completions that decide what every scripted engine answers."""

    messages: list[SentMessage]
    model: str = MODEL
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: Annotated[int, Meta(ge=1, le=COMPLETIONS_MAX)] | None = None
    tools: list[FreeObject] | None = None
    tool_choice: str | FreeObject | None = None
    response_format: FreeObject | None = None

    @property
    def output_tokens_max(self) -> int | None:
        """The bound on output tokens, under either of its names."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def calls_made(self) -> int:
        """The calls of tools that the conversation already has."""
        return sum(len(message.tool_calls or ()) for message in self.messages)


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
