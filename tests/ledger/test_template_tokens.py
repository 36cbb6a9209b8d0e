"""What chat templates add on their own is reserved too, and little more than that."""

from typing import Final

import pytest

from bench.templates import billed_tokens, bound_tokens, template_tokens
from tests.ledger.template_figures import CHATS, FIGURES
from tests.support.engine import Engine
from tests.support.small_chats import SMALL_CHATS
from tests.support.vllm import NAME
from tollhouse.cli.trial.demo_engine import MODEL
from tollhouse.ledger.bounds import TokenizerFamily

DECLARED: Final = {
    "Bielik-11B-v3": 463,
    "Command-A": 595,
    "Command-R7B": 595,
    "Devstral-Small": 1_376,
    "GigaChat3-10B": 1_057,
    "Mistral-Small-3.2": 556,
}
"""`template_tokens` of the models whose system prompts are longer than their family's number."""
ENGINES: Final = {"llama_engine": MODEL, "vllm_engine": NAME}


def figures_of(template: str) -> tuple[TokenizerFamily, dict[str, int]]:
    family, *tokens = FIGURES[template]
    return TokenizerFamily(family), dict(zip(CHATS, tokens, strict=True))


def is_above(billed: dict[str, int], bound: dict[str, int]) -> bool:
    return any(tokens > bound[chat] for chat, tokens in billed.items())


def test_every_chat_is_in_the_figures() -> None:
    assert set(CHATS) == set(SMALL_CHATS)


@pytest.mark.parametrize("template", FIGURES)
def test_no_template_in_common_use_has_more_tokens_than_the_bound(template: str) -> None:
    family, billed = figures_of(template)

    assert not is_above(billed, bound_tokens(family, DECLARED.get(template)))


@pytest.mark.parametrize("template", FIGURES)
def test_what_an_engine_bills_for_a_word_is_what_to_declare(template: str) -> None:
    family, billed = figures_of(template)
    declared = template_tokens(billed)

    assert not is_above(billed, bound_tokens(family, declared))
    if template in DECLARED:
        assert declared == DECLARED[template]
        assert is_above(billed, bound_tokens(family)), "its family's number would do"


@pytest.mark.parametrize(("family", "tokens"), [("BYTES", 304), ("NFC", 176), ("NFKC", 432)])
def test_a_prompt_of_two_bytes_is_bounded_by_its_family(family: str, tokens: int) -> None:
    assert bound_tokens(TokenizerFamily[family])["question"] == tokens


@pytest.mark.nightly
@pytest.mark.parametrize(
    "engine", ["llama_engine", pytest.param("vllm_engine", marks=pytest.mark.vllm)]
)
def test_a_real_engine_bills_no_more_than_the_bound(
    request: pytest.FixtureRequest, engine: str
) -> None:
    running: Engine = request.getfixturevalue(engine)

    billed = billed_tokens(running, ENGINES[engine])

    assert set(billed) == set(SMALL_CHATS)
    assert billed == figures_of("SmolLM2-135M")[1]
    for family in TokenizerFamily:
        assert not is_above(billed, bound_tokens(family))
        assert not is_above(billed, bound_tokens(family, template_tokens(billed)))
