"""A judge that is a language model: the probabilities of its one-word answer, over the port.

Any engine that speaks OpenAI's dialect and returns log probabilities will do. Where an engine can
be asked for given tokens, nothing is left to the bounds of a list of the most likely ones.
"""

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from tollhouse.backends.port import BackendPort
from tollhouse.backends.types import Ask, UpstreamCompletion
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.judging import layout, score
from tollhouse.judging.errors import JudgeFailed
from tollhouse.judging.types import Evidence, FailureReason, Profile, Question, Reading
from tollhouse.judging.variants import Variants, spelled

PATH = "/chat/completions"
TOP_LOGPROBS = 20
"""The most that OpenAI's dialect allows."""
_REASONS = {
    Kind.PROVIDER_INVALID: FailureReason.REJECTED,
    Kind.DEADLINE: FailureReason.TIMED_OUT,
}


class _Entry(Struct, frozen=True):
    token: str
    logprob: float


class _Position(Struct, frozen=True):
    top_logprobs: list[_Entry]


class _Logprobs(Struct, frozen=True):
    content: list[_Position]


class EngineJudge:
    """One per worker."""

    def __init__(
        self, port: BackendPort, profile: Profile, variants: Variants, *, backend: str
    ) -> None:
        self._port = port
        self._profile = profile
        self._variants = variants
        self._options = _options(profile, variants)
        told = msgspec.json.encode([backend, layout.TEMPLATE, profile.order, self._options])
        self._identity = hashlib.sha256(told).hexdigest()

    @property
    def identity(self) -> str:
        """Changes with the model, the words of the prompt and the tokens that count."""
        return self._identity

    @property
    def profile(self) -> Profile:
        """How it wants to be asked."""
        return self._profile

    async def ask(self, question: Question) -> Evidence:
        """One call, one token."""
        ask = Ask(path=PATH, body=self._body(question), affinity=question.seal.affinity)
        try:
            completion, _ = await self._port.complete(ask)
        except GatewayError as failure:
            reason = _REASONS.get(failure.kind, FailureReason.UNREACHABLE)
            raise JudgeFailed(reason) from failure
        return self._evidence(_first_position(completion))

    def _body(self, question: Question) -> bytes:
        body = self._options | {"messages": layout.messages(question, self._profile.order)}
        if self._profile.takes_cache_salt:
            body["cache_salt"] = question.seal.cache_salt
        return msgspec.json.encode(body)

    def _evidence(self, position: _Position) -> Evidence:
        found: dict[str, float] = {}
        for entry in position.top_logprobs:
            token = spelled(entry.token)
            # Some engines list the chosen token twice.
            found[token] = max(entry.logprob, found.get(token, entry.logprob))
        if self._profile.reading is Reading.TOP_LOGPROBS:
            return score.from_top(found, yes=self._variants.yes, no=self._variants.no)
        return score.from_exact(
            found,
            yes=[_numbered(variant.yes_id) for variant in self._variants.all],
            no=[_numbered(variant.no_id) for variant in self._variants.all],
        )


def _options(profile: Profile, variants: Variants) -> dict[str, Any]:
    options: dict[str, Any] = {
        "model": profile.model,
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
    }
    if profile.reading is Reading.TOP_LOGPROBS:
        return options | {"top_logprobs": TOP_LOGPROBS}
    pairs = [(variant.yes_id, variant.no_id) for variant in variants.all]
    assert all(None not in pair for pair in pairs), "exact reading needs the engine's tokenizer"
    numbers = [number for pair in pairs for number in pair]
    return options | {"logprob_token_ids": numbers, "return_tokens_as_token_ids": True}


def _numbered(token_id: int | None) -> str:
    """As vLLM writes a token when it is asked for numbers."""
    return f"token_id:{token_id}"


def _first_position(completion: UpstreamCompletion) -> _Position:
    try:
        found = msgspec.convert(completion.choices[0].logprobs, _Logprobs)
        return found.content[0]
    except (msgspec.ValidationError, IndexError):
        raise JudgeFailed(FailureReason.GARBLED) from None
