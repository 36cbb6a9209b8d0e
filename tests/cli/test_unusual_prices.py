"""Prices that are probably in another unit are told, and others are not."""

from typing import Any

import pytest

from tollhouse.catalog import rules
from tollhouse.cli.models.unusual_prices import LIST_PRICES, unusual_prices

UNIT = "A price is US dollars for one unit, not for a thousand or a million."


def told(**pricing: dict[str, Any]) -> list[str]:
    """What is told of models with these prices."""
    models = {
        name: {
            "backend": "engine",
            "context_length": 8192,
            "max_output_length": 4096,
            "input_modalities": ["text", "image"],
            "pricing": prices,
        }
        for name, prices in pricing.items()
    }
    backends = {"engine": {"replicas": ["http://engine.example/v1"]}}
    return list(unusual_prices(rules.parse(backends, models).models))


def prices(prompt: str, completion: str = "0.000002", **others: str) -> dict[str, str]:
    return {"prompt": prompt, "completion": completion, **others}


def places(found: list[str]) -> list[str]:
    return [each.partition(": ")[0] for each in found]


def test_a_price_of_a_known_model_is_compared_with_the_list() -> None:
    (found,) = told(**{"openai/GPT-4o-mini-2024-07-18": prices("0.00015")})

    assert found == (
        'models."openai/GPT-4o-mini-2024-07-18".pricing.prompt: 0.00015 is 1,000 times more than '
        f"the list price of gpt-4o-mini, 0.00000015. {UNIT}"
    )


@pytest.mark.parametrize("family", LIST_PRICES)
def test_every_list_price_is_usual_also_for_another_model(family: str) -> None:
    prompt, completion = (f"{each / 10**9:.12f}" for each in LIST_PRICES[family])

    assert told(**{family: prices(prompt, completion), "own": prices(prompt, completion)}) == []


def test_a_price_of_an_unknown_model_is_compared_with_the_usual_one() -> None:
    found = told(own=prices("2", "0.0000000001"))

    usual = "than the usual price of a provider"
    own = 'models."own".pricing'
    assert found == [
        f"{own}.prompt: 2 is 2,000,000 times more {usual}, 0.000001. {UNIT}",
        f"{own}.completion: 0.0000000001 is 50,000 times less {usual}, 0.000005. {UNIT}",
    ]


def test_a_price_is_compared_with_those_of_the_other_models() -> None:
    low = {f"model-{number}": prices("0.00000001") for number in range(3)}

    (found,) = told(**low, dear=prices("0.0001"))

    assert found.startswith(
        'models."dear".pricing.prompt: 0.0001 is 10,000 times more than the middle of the other '
    )


@pytest.mark.parametrize(("usual", "other"), [("0.00000001", "0.0001"), ("0.0001", "0.00000001")])
def test_of_three_models_only_the_one_that_differs_is_told(usual: str, other: str) -> None:
    found = told(a=prices(usual), b=prices(usual), wrong=prices(other))

    assert places(found) == ['models."wrong".pricing.prompt']


def test_a_price_that_the_list_refutes_is_no_reference_for_others() -> None:
    wrong = {name: prices("2") for name in ("a", "b")}

    assert places(told(**wrong, sound=prices("0.000001"))) == [
        'models."a".pricing.prompt',
        'models."b".pricing.prompt',
    ]


def test_every_kind_of_price_is_compared() -> None:
    kinds = ("image", "request", "input_cache_read", "input_cache_write", "reasoning")
    usual = dict.fromkeys(kinds, "0.00001")

    found = told(a=prices("0.000001", **usual), b=prices("0.000001", **dict.fromkeys(kinds, "10")))

    assert set(places(found)) >= {f'models."b".pricing.{kind}' for kind in kinds}


@pytest.mark.parametrize("kind", ["input_cache_read", "input_cache_write", "reasoning"])
def test_a_price_of_tokens_that_are_counted_apart_is_compared_with_the_list(kind: str) -> None:
    found = told(own=prices("0.000001", **{kind: "1"}))

    assert places(found) == [f'models."own".pricing.{kind}']


def test_a_free_model_is_not_told() -> None:
    assert told(free=prices("0", "0"), other=prices("0.000001")) == []
