"""Requests to the test upstream: OpenAI's API with additions of vLLM and llama.cpp."""

from typing import Annotated

from msgspec import Meta, Struct

from tollhouse.contract.bounds import FreeObject
from tollhouse.trial.chat import Chat, SentMessage, prompt_tokens


class ChatAsked(Chat, frozen=True):
    """Body of POST /v1/chat/completions."""

    functions: list[FreeObject] | None = None
    function_call: str | FreeObject | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=100)] | None = None
    prompt_logprobs: Annotated[int, Meta(ge=0, le=100)] | None = None
    reasoning: FreeObject | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: FreeObject | None = None
    web_search_options: FreeObject | None = None

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
