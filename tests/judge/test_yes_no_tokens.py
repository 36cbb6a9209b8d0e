"""Only spellings count in which both answers are single tokens."""

from collections.abc import Sequence

import pytest

from tests.support.judge import TOKENS, tokenize
from tollhouse.evaluation.errors import AsymmetricTokenizer
from tollhouse.evaluation.judge.yes_no_tokens import (
    YesNoToken,
    YesNoTokens,
    find_yes_no_tokens,
    spelling,
)


async def found_by(vocabulary: dict[str, int]) -> YesNoTokens:
    async def ask(text: str) -> Sequence[int]:
        return [vocabulary[text]] if text in vocabulary else [1, 2]

    return await find_yes_no_tokens(ask)


async def test_spellings_of_both_sides_are_found_with_their_tokens() -> None:
    async def ask(text: str) -> Sequence[int]:
        return tokenize(text)

    found = await find_yes_no_tokens(ask)

    assert set(found.all) == {
        YesNoToken("Yes", "No", 11, 12),
        YesNoToken(" Yes", " No", 13, 14),
        YesNoToken("yes", "no", 15, 16),
    }
    assert "NO" in TOKENS
    assert len(found.yes) == len(found.no) == 3


async def test_an_engine_without_a_common_spelling_cannot_judge() -> None:
    with pytest.raises(AsymmetricTokenizer):
        await found_by({"Yes": 5, "NO": 6, " no": 7})


async def test_both_answers_as_one_unknown_token_are_no_spelling() -> None:
    with pytest.raises(AsymmetricTokenizer):
        await found_by(dict.fromkeys(("Yes", "No", "yes", "no"), 0))


async def test_two_spellings_of_one_token_count_once() -> None:
    """Sentence-piece tokenizers add a space of their own at the beginning."""
    found = await found_by({"Yes": 5, " Yes": 5, "No": 6, " No": 6})

    assert found.all == (YesNoToken("Yes", "No", 5, 6),)


@pytest.mark.parametrize(
    ("wire", "expected"), [("\u0120Yes", " Yes"), ("\u2581no", " no"), ("\u010aNo", "\nNo")]
)
def test_vocabularies_write_spaces_their_own_way(wire: str, expected: str) -> None:
    assert spelling(wire) == expected
