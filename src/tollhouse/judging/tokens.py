"""Log probabilities repeat an answer token by token, and name tokens that it could have had.

They are judged as the texts that these tokens make: the chosen ones, then the second guesses one
after another, then the third. Numbers say nothing. `bytes` are the token once more: they are
computed from it before an answer that is held back is judged. What has another form is judged as
the object that it is.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from tollhouse.judging.parts import of_value
from tollhouse.judging.types import Part

TokenNumber = Annotated[str, Meta(pattern=r"\A[0-9]+\Z")]


class _Guess(Struct, frozen=True, forbid_unknown_fields=True):
    token: str
    logprob: float | None = None
    bytes: list[int] | None = None
    id: int | None = None


class _Token(_Guess, frozen=True, forbid_unknown_fields=True):
    top_logprobs: list[_Guess] = []


class _Choice(Struct, frozen=True, forbid_unknown_fields=True):
    content: list[_Token] | None = None
    refusal: list[_Token] | None = None


class _PromptGuess(Struct, frozen=True, forbid_unknown_fields=True):
    logprob: float | None = None
    rank: int | None = None
    decoded_token: str | None = None


def of_choice(label: str, found: Sequence[Any], *, said: Any) -> Iterator[Part]:  # noqa: ANN401 - free-form
    """The probabilities of one choice, in the pieces in which they came; `said` is its text."""
    pieces = [piece for piece in found if piece is not None]
    try:
        decoded = [msgspec.convert(piece, _Choice) for piece in pieces]
    except msgspec.ValidationError:
        for piece in pieces:
            yield from of_value(label, piece)
        return
    for name in ("content", "refusal"):
        tokens = [token for piece in decoded for token in getattr(piece, name) or ()]
        yield from _of_tokens(f"{label} {name}", tokens, said)


def _of_tokens(label: str, tokens: Sequence[_Token], said: Any) -> Iterator[Part]:  # noqa: ANN401
    chosen = "".join(token.token for token in tokens)
    known = {said, chosen, ""} if isinstance(said, str) else {chosen, ""}
    if chosen and chosen != said:
        yield Part(label, chosen)
    guesses = [[guess.token for guess in token.top_logprobs] for token in tokens]
    yield from _of_guesses(label, guesses, known)


def of_prompt(label: str, found: Sequence[Any] | None) -> Iterator[Part]:
    """The probabilities of the prompt: at each position some tokens by their numbers."""
    try:
        positions = msgspec.convert(found or [], list[dict[TokenNumber, _PromptGuess] | None])
    except msgspec.ValidationError:
        yield from of_value(label, found)
        return
    guesses = [[guess.decoded_token or "" for guess in (at or {}).values()] for at in positions]
    yield from _of_guesses(label, guesses, {""})


def _of_guesses(label: str, guesses: Sequence[Sequence[str]], known: set[str]) -> Iterator[Part]:
    """Texts across the positions: of all first guesses, of all second ones, and so on."""
    for rank, texts in enumerate(zip_longest(*guesses, fillvalue=""), 1):
        text = "".join(texts)
        if text not in known:
            yield Part(f"{label} guess {rank}", text)
