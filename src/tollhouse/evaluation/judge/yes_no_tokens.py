"""The spellings of "yes" and "no" that count, found with the engine's own tokenizer.

A spelling counts only if both words are one token each. SmolLM2 has a token for "NO" and none for
"YES": if it counted, every score would move towards "no".
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from tollhouse.backends.port import BackendPort
from tollhouse.backends.types import UpstreamRequest
from tollhouse.base.errors import GatewayError
from tollhouse.evaluation.errors import AsymmetricTokenizer, JudgeFailed
from tollhouse.evaluation.types import FailureReason

Tokenize = Callable[[str], Awaitable[Sequence[int]]]

_PATH = "/tokenize"
_WORDS = (("Yes", "No"), ("yes", "no"), ("YES", "NO"))
_FRAMES = ("{}", " {}", "\n{}", '"{}', "'{}", "*{}", "**{}", "{}.", " {}.", '"{}"', "'{}'")
_SPACES = str.maketrans({"\u0120": " ", "\u2581": " ", "\u010a": "\n"})
"""Spaces and line ends as byte-level and SentencePiece vocabularies write them."""


@dataclass(frozen=True, slots=True)
class YesNoToken:
    """One spelling of both words. The token IDs are None without a tokenizer."""

    yes: str
    no: str
    yes_id: int | None = None
    no_id: int | None = None


@dataclass(frozen=True, slots=True)
class YesNoTokens:
    """All spellings that count."""

    all: tuple[YesNoToken, ...]

    @property
    def yes(self) -> frozenset[str]:
        """The spellings of "yes", as many as of "no"."""
        return frozenset(variant.yes for variant in self.all)

    @property
    def no(self) -> frozenset[str]:
        """The spellings of "no", as many as of "yes"."""
        return frozenset(variant.no for variant in self.all)


COMMON = YesNoTokens(
    (
        YesNoToken("Yes", "No"),
        YesNoToken("yes", "no"),
        YesNoToken(" Yes", " No"),
        YesNoToken(" yes", " no"),
    )
)
"""For engines without a tokenizer endpoint: common vocabularies have these as tokens."""


class _TokenizeResult(Struct, frozen=True):
    """The part of a tokenizer's answer that llama.cpp and vLLM have in common."""

    tokens: list[int]


async def engine_yes_no_tokens(
    port: BackendPort, model: str, *, has_tokenizer: bool
) -> YesNoTokens:
    """Return the spellings that count for an engine. Raises `JudgeFailed`."""
    if not has_tokenizer:
        return COMMON

    async def tokenize(text: str) -> Sequence[int]:
        return await _token_ids(port, model, text)

    try:
        return await find_yes_no_tokens(tokenize)
    except AsymmetricTokenizer:
        raise JudgeFailed(FailureReason.UNSEEN) from None


async def _token_ids(port: BackendPort, model: str, text: str) -> Sequence[int]:
    """Return the token IDs. Sends each field by the names of both engines, which ignore others."""
    fields = {
        "model": model,
        "prompt": text,
        "add_special_tokens": False,
        "content": text,
        "add_special": False,
    }
    request = UpstreamRequest(path=_PATH, body=msgspec.json.encode(fields), is_at_host=True)
    try:
        found, _ = await port.fetch(request, _TokenizeResult)
    except GatewayError as failure:
        raise JudgeFailed(FailureReason.UNREACHABLE) from failure
    return found.tokens


async def find_yes_no_tokens(tokenize: Tokenize) -> YesNoTokens:
    """Return the spellings in which both words are one token. `tokenize` adds no other tokens.

    Raises `AsymmetricTokenizer` if there is none.
    """
    found = [
        variant
        for yes, no in _spellings()
        if (variant := _symmetric(yes, await tokenize(yes), no, await tokenize(no))) is not None
    ]
    distinct = _distinct(found)
    if not distinct:
        raise AsymmetricTokenizer
    return YesNoTokens(distinct)


def spelling(token: str) -> str:
    """Return a token of an engine's answer in the spelling of `YesNoToken`."""
    return token.translate(_SPACES)


def _spellings() -> Iterable[tuple[str, str]]:
    return ((frame.format(yes), frame.format(no)) for frame in _FRAMES for yes, no in _WORDS)


def _symmetric(
    yes: str, yes_ids: Sequence[int], no: str, no_ids: Sequence[int]
) -> YesNoToken | None:
    if len(yes_ids) != 1 or len(no_ids) != 1 or yes_ids[0] == no_ids[0]:
        return None
    return YesNoToken(yes, no, yes_ids[0], no_ids[0])


def _distinct(found: Iterable[YesNoToken]) -> tuple[YesNoToken, ...]:
    """Drop spellings with a token seen before: some tokenizers drop or add a space."""
    kept: dict[int, YesNoToken] = {}
    taken: set[int | None] = set()
    for variant in found:
        if variant.yes_id is not None and not taken & {variant.yes_id, variant.no_id}:
            kept[variant.yes_id] = variant
            taken |= {variant.yes_id, variant.no_id}
    return tuple(kept.values())
