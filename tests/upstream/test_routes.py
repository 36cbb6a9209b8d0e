"""What the test upstream answers beside chat, and what it refuses."""

import pytest

from tests.upstream.upstream import ScriptedUpstream
from tests.upstream.wire import HELLO, HELLO_TOKENS, ask


async def test_tokens_are_counted_as_chat_counts_them(upstream: ScriptedUpstream) -> None:
    counted = await ask(upstream, path="/v1/messages/count_tokens")
    with_system = await ask(
        upstream, HELLO | {"system": "Be brief."}, path="/v1/messages/count_tokens"
    )
    tokenized = await ask(upstream, path="/tokenize")
    prompt = await ask(upstream, {"prompt": "one two"}, path="/tokenize")
    content = await ask(upstream, {"content": "one two three"}, path="/tokenize")

    assert counted.json() == {"input_tokens": HELLO_TOKENS}
    assert with_system.json() == {"input_tokens": HELLO_TOKENS + 3}
    assert tokenized.json()["count"] == len(tokenized.json()["tokens"]) == HELLO_TOKENS
    assert prompt.json()["count"] == 2
    assert content.json()["tokens"] == [0, 1, 2]


async def test_models_and_health_can_be_asked_for(upstream: ScriptedUpstream) -> None:
    models = await ask(upstream, b"", path="/v1/models", method="GET")
    health = await ask(upstream, b"", path="/health", method="GET")
    nothing = await ask(upstream, b"", path="/v2", method="GET")

    assert [model["id"] for model in models.json()["data"]] == ["test"]
    assert health.json() == {"status": "ok"}
    assert nothing.status == 404


@pytest.mark.parametrize("body", [b"{", b"{}", b'{"messages": [], "n": 129}'])
async def test_what_cannot_be_read_is_refused(upstream: ScriptedUpstream, body: bytes) -> None:
    assert (await ask(upstream, body)).status == 400
