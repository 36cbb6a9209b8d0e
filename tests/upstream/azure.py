"""What Azure OpenAI adds to OpenAI's API: a version, its own header, and results of its filters."""

from collections.abc import Iterator
from typing import Final

import msgspec

from tests.upstream.answers import ScriptedAnswer
from tests.upstream.connection import Request
from tests.upstream.rendering import records as openai_records
from tests.upstream.scripts import UpstreamScript
from tollhouse.contract.bounds import FreeObject

KEY_HEADER: Final = "api-key"
NO_KEY: Final = UpstreamScript(
    status=401, error={"code": "401", "message": "Access denied due to invalid subscription key."}
)
NO_VERSION: Final = UpstreamScript(
    status=404, error={"code": "404", "message": "Resource not found"}
)
FILTERED: Final[FreeObject] = {
    "hate": {"filtered": False, "severity": "safe"},
    "self_harm": {"filtered": False, "severity": "safe"},
    "sexual": {"filtered": False, "severity": "safe"},
    "violence": {"filtered": False, "severity": "safe"},
}
PROMPT_RECORD: Final[FreeObject] = {
    "choices": [],
    "created": 0,
    "id": "",
    "model": "",
    "object": "",
    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": FILTERED}],
}
"""The first record of a stream, which has no choice."""


def refusal(request: Request) -> UpstreamScript | None:
    """Return what Azure answers to a request without its key or version, or None."""
    if not request.headers.get(KEY_HEADER):
        return NO_KEY
    return None if request.query.startswith("api-version=") else NO_VERSION


def records(answer: ScriptedAnswer) -> Iterator[bytes]:
    """Yield the data of each event; results of filters stand before the answer and beside it."""
    yield msgspec.json.encode(PROMPT_RECORD)
    for record in openai_records(answer):
        yield record.replace(
            b'"finish_reason":', b'"content_filter_results":{},"finish_reason":', 1
        )
