"""The judge client: asks a language model, and reads the probabilities of its one-word answer.

Any engine with OpenAI's chat completions and log probabilities can be a judge. If it returns the
probabilities of given token IDs, scores are exact; otherwise the most likely tokens bound them.
"""

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from tollhouse.backends.port import BackendPort
from tollhouse.backends.types import UpstreamCompletion, UpstreamRequest
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.evaluation.errors import JudgeFailed
from tollhouse.evaluation.judge import prompts, score
from tollhouse.evaluation.judge.yes_no_tokens import YesNoTokens, spelling
from tollhouse.evaluation.types import (
    AnswerProbabilities,
    FailureReason,
    JudgeProfile,
    JudgeQuestion,
    LogprobSource,
)

TOP_LOGPROBS = 20
"""The most that OpenAI's API allows."""
_REASONS = {
    Kind.PROVIDER_INVALID: FailureReason.REJECTED,
    Kind.INVALID: FailureReason.REJECTED,
    Kind.DEADLINE: FailureReason.TIMED_OUT,
}


class _Entry(Struct, frozen=True):
    token: str
    logprob: float


class _Position(Struct, frozen=True):
    top_logprobs: list[_Entry]


class _JudgeLogprobs(Struct, frozen=True):
    content: list[_Position]


class JudgeClient:
    """Sends questions to the judge's backend. Answers many at once."""

    def __init__(
        self, port: BackendPort, profile: JudgeProfile, yes_no_tokens: YesNoTokens, *, backend: str
    ) -> None:
        self._port = port
        self._yes_no_tokens = yes_no_tokens
        self._options = _options(profile, yes_no_tokens)
        self.profile = profile
        identity = msgspec.json.encode([backend, prompts.TEMPLATE, profile.order, self._options])
        self.identity = hashlib.sha256(identity).hexdigest()
        """Part of the key of cached verdicts: changes with the model, the prompt and the tokens."""

    async def ask(self, question: JudgeQuestion) -> AnswerProbabilities:
        """Return the probabilities of "yes" and "no" as answer. Raises `JudgeFailed`."""
        request = UpstreamRequest(
            path=self.profile.path,
            body=self._body(question),
            model=self.profile.model,
            affinity=question.request_keys.affinity,
        )
        try:
            completion, _ = await self._port.complete(request)
        except GatewayError as failure:
            reason = _REASONS.get(failure.kind, FailureReason.UNREACHABLE)
            raise JudgeFailed(reason) from failure
        return self._probabilities(_first_position(completion))

    def _body(self, question: JudgeQuestion) -> bytes:
        body = self._options | {"messages": prompts.messages(question, self.profile.order)}
        if self.profile.takes_cache_salt:
            body["cache_salt"] = question.request_keys.cache_salt
        return msgspec.json.encode(body)

    def _probabilities(self, position: _Position) -> AnswerProbabilities:
        found: dict[str, float] = {}
        for entry in position.top_logprobs:
            token = spelling(entry.token)
            # Some engines list the chosen token twice.
            found[token] = max(entry.logprob, found.get(token, entry.logprob))
        if self.profile.reading is LogprobSource.TOP_LOGPROBS:
            return score.probabilities_from_top(
                found, yes=self._yes_no_tokens.yes, no=self._yes_no_tokens.no
            )
        return score.probabilities_from_exact(
            found,
            yes=[_token_text(variant.yes_id) for variant in self._yes_no_tokens.all],
            no=[_token_text(variant.no_id) for variant in self._yes_no_tokens.all],
        )


def _options(profile: JudgeProfile, yes_no_tokens: YesNoTokens) -> dict[str, Any]:
    options: dict[str, Any] = {
        "model": profile.model,
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
    }
    if profile.reading is LogprobSource.TOP_LOGPROBS:
        return options | {"top_logprobs": TOP_LOGPROBS}
    pairs = [(variant.yes_id, variant.no_id) for variant in yes_no_tokens.all]
    assert all(None not in pair for pair in pairs), "exact reading needs the engine's tokenizer"
    numbers = [number for pair in pairs for number in pair]
    return options | {"logprob_token_ids": numbers, "return_tokens_as_token_ids": True}


def _token_text(token_id: int | None) -> str:
    """Return a token as vLLM writes it with `return_tokens_as_token_ids`."""
    return f"token_id:{token_id}"


def _first_position(completion: UpstreamCompletion) -> _Position:
    try:
        found = msgspec.convert(completion.choices[0].logprobs, _JudgeLogprobs)
        return found.content[0]
    except (msgspec.ValidationError, IndexError):
        raise JudgeFailed(FailureReason.GARBLED) from None
