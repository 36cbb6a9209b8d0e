"""Log probabilities as texts: they repeat an answer by tokens, with alternatives for each token.

The chosen tokens form one text, all first alternatives another, all second ones another, and so
on. Numbers are left out. So are `bytes`, which repeat the token: the gateway computes them from it
before a buffered answer is judged. Log probabilities of an unknown form are judged as objects.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from tollhouse.evaluation.content.parts import value_parts
from tollhouse.evaluation.types import ContentPart

TokenNumber = Annotated[str, Meta(pattern=r"\A[0-9]+\Z")]


class _AlternativeToken(Struct, frozen=True, forbid_unknown_fields=True):
    token: str
    logprob: float | None = None
    bytes: list[int] | None = None
    id: int | None = None


class _AnswerToken(_AlternativeToken, frozen=True, forbid_unknown_fields=True):
    top_logprobs: list[_AlternativeToken] = []


class _ChoiceTokens(Struct, frozen=True, forbid_unknown_fields=True):
    content: list[_AnswerToken] | None = None
    refusal: list[_AnswerToken] | None = None


class _PromptAlternative(Struct, frozen=True, forbid_unknown_fields=True):
    logprob: float | None = None
    rank: int | None = None
    decoded_token: str | None = None


def choice_parts(label: str, found: Sequence[Any], *, content: Any) -> Iterator[ContentPart]:  # noqa: ANN401 - free-form
    """Yield the texts of a choice's log probabilities, in stream order. `content` is its text."""
    pieces = [piece for piece in found if piece is not None]
    try:
        decoded = [msgspec.convert(piece, _ChoiceTokens) for piece in pieces]
    except msgspec.ValidationError:
        for piece in pieces:
            yield from value_parts(label, piece)
        return
    for name in ("content", "refusal"):
        tokens = [token for piece in decoded for token in getattr(piece, name) or ()]
        yield from _token_parts(f"{label} {name}", tokens, content)


def _token_parts(
    label: str,
    tokens: Sequence[_AnswerToken],
    content: Any,  # noqa: ANN401 - free-form
) -> Iterator[ContentPart]:
    chosen = "".join(token.token for token in tokens)
    known = {content, chosen, ""} if isinstance(content, str) else {chosen, ""}
    if chosen and chosen != content:
        yield ContentPart(label, chosen)
    guesses = [[guess.token for guess in token.top_logprobs] for token in tokens]
    yield from _alternative_parts(label, guesses, known)


def prompt_parts(label: str, found: Sequence[Any] | None) -> Iterator[ContentPart]:
    """Yield the texts of the prompt's log probabilities: tokens by ID for each position."""
    try:
        positions = msgspec.convert(found or [], list[dict[TokenNumber, _PromptAlternative] | None])
    except msgspec.ValidationError:
        yield from value_parts(label, found)
        return
    guesses = [[guess.decoded_token or "" for guess in (at or {}).values()] for at in positions]
    yield from _alternative_parts(label, guesses, {""})


def _alternative_parts(
    label: str, guesses: Sequence[Sequence[str]], known: set[str]
) -> Iterator[ContentPart]:
    """Yield the texts across all positions: of the first alternatives, the second, and so on."""
    for rank, texts in enumerate(zip_longest(*guesses, fillvalue=""), 1):
        text = "".join(texts)
        if text not in known:
            yield ContentPart(f"{label} guess {rank}", text)
