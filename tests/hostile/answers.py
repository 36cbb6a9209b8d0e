"""Requests for long answers, by operation and form."""

import json
from typing import Any

from tests.support.raw_streams import CHAT, MESSAGES

TOP_LOGPROBS = 20
"""With so many guesses, a token takes more than 2 KB of an answer."""
WORD_CHARACTERS = 2_000
"""Messages have no log probabilities, so their tokens are long."""


def long_answer(path: str, model: str, tokens: int, *, is_stream: bool) -> dict[str, Any]:
    """Return the body of a request that is answered by so many tokens with log probabilities."""
    said = json.dumps({"script": {"tokens": tokens}})
    if path == CHAT:
        fields: dict[str, Any] = {
            "messages": [{"role": "user", "content": said}],
            "max_tokens": tokens,
            "logprobs": True,
        }
    elif path == MESSAGES:
        script = {"tokens": tokens, "word_characters": WORD_CHARACTERS}
        said = json.dumps({"script": script})
        messages = [{"role": "user", "content": said}]
        return {"model": model, "stream": is_stream, "max_tokens": tokens, "messages": messages}
    else:
        fields = {
            "input": said,
            "max_output_tokens": tokens,
            "include": ["message.output_text.logprobs"],
        }
    return {"model": model, "stream": is_stream, "top_logprobs": TOP_LOGPROBS, **fields}
