"""What engines are asked, in OpenAI's dialect with the additions of vLLM and llama.cpp."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from tollhouse.contract.bounds import COMPLETIONS_MAX, FreeObject

MODEL: Final = "test"


class Message(Struct, frozen=True):
    """Parts without a text are not looked at."""

    role: str = "user"
    content: str | list[FreeObject] | None = None

    @property
    def text(self) -> str:
        """All of it, parts by lines."""
        match self.content:
            case None:
                return ""
            case str(text):
                return text
            case parts:
                return "\n".join(_text(part) for part in parts)


class StreamOptions(Struct, frozen=True):
    """The second one is vLLM's, and works only beside the first."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class ChatAsked(Struct, frozen=True):
    """Body of POST /v1/chat/completions."""

    messages: list[Message]
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
        """Whichever name it has."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def includes_usage(self) -> bool:
        """At the end of a stream."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def includes_usage_always(self) -> bool:
        """In every record of a stream."""
        return self.includes_usage and bool(
            self.stream_options and self.stream_options.continuous_usage_stats
        )

    @property
    def wants_reasoning(self) -> bool:
        """By any of the three ways to ask for it."""
        return (
            self.reasoning_effort not in (None, "none")
            or bool(self.reasoning)
            or bool((self.chat_template_kwargs or {}).get("enable_thinking"))
        )


class CountAsked(Struct, frozen=True):
    """Body of POST /v1/messages/count_tokens, Anthropic's."""

    messages: list[Message]
    system: str | list[FreeObject] | None = None

    def prompt_tokens(self) -> int:
        """As a chat of the same messages would be counted."""
        system = [] if self.system is None else [Message("system", self.system)]
        return prompt_tokens([*system, *self.messages])


class TokenizeAsked(Struct, frozen=True):
    """Body of POST /tokenize: vLLM's `prompt` or `messages`, llama.cpp's `content`."""

    prompt: str | None = None
    messages: list[Message] | None = None
    content: str | None = None

    def tokens(self) -> int:
        """Words, and one for each message if there are any."""
        if self.messages is not None:
            return prompt_tokens(self.messages)
        return len((self.prompt or self.content or "").split())


def prompt_tokens(messages: Iterable[Message]) -> int:
    """Every word is a token, and every message one more."""
    return sum(1 + len(message.text.split()) for message in messages)


def last_words(messages: Iterable[Message]) -> str:
    """What the user said last."""
    said = [message for message in messages if message.role == "user"]
    return said[-1].text if said else ""


def _text(part: FreeObject) -> str:
    text: Any = part.get("text")
    return text if isinstance(text, str) else ""
