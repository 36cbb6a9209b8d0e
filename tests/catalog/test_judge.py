"""The judge of the configuration: sound together with its backend, or refused by its path."""

import re
import tomllib
from typing import Any

import pytest
from msgspec import inspect

from tests.cli.documents import blocks, read
from tests.support.catalogs import BACKENDS
from tollhouse.catalog import rules
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import CatalogJudge

JUDGE: dict[str, Any] = {"backend": "engine", "model": "m", "context_length": 8_192}
GUIDE = read("docs/guides/judging.md")


def refusal(**changes: object) -> str:
    with pytest.raises(InvalidCatalog) as refused:
        rules.parse(BACKENDS, {}, JUDGE | changes)
    return str(refused.value)


def test_without_a_table_there_is_no_judge() -> None:
    assert rules.parse(BACKENDS, {}).judge is None


def test_a_minimal_judge_is_completed_by_defaults() -> None:
    judge = rules.parse(BACKENDS, {}, JUDGE).judge

    assert judge is not None
    assert (judge.asks, judge.reads) == ("content_first", "top_logprobs")


def test_bounds_may_be_equal_and_only_token_ids_need_a_tokenizer() -> None:
    bounds = {"request_tokens_max": 20_000, "organization_tokens_per_minute": 20_000}

    assert rules.parse(BACKENDS, {}, JUDGE | bounds | {"has_tokenizer": False}).judge is not None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"backend": "engin"}, "judge.backend: there is no such backend. Did you mean `engine`?"),
        ({"question_tokens_max": 7_681}, "judge.question_tokens_max: leaves less than 512 tokens"),
        ({"reads": "token_ids", "has_tokenizer": False}, "judge.reads: 'token_ids' needs"),
        ({"reads": "text"}, "judge.reads: Invalid enum value 'text'"),
        ({"request_questions_max": 65}, "judge.request_questions_max: more than"),
        ({"organization_questions_max": 257}, "judge.organization_questions_max: more than"),
        (
            {"held_request_bytes_max": 2**28},
            "judge: Object contains unknown field `held_request_bytes_max`. Set inference.buffer_",
        ),
        (
            {"watched_max": 5},
            "judge: Object contains unknown field `watched_max`. Set judge.monitoring_queue_size",
        ),
        ({"coverage_min_basis_points": 0}, "judge.coverage_min_basis_points: Expected `int` >= 1"),
        ({"modle": "m"}, "judge: Object contains unknown field `modle`. Did you mean `model`?"),
        ({"api_key": "sk"}, "judge: Object contains unknown field `api_key`"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, object], told: str) -> None:
    assert refusal(**changes).startswith(told)


def test_the_guide_has_every_setting_with_its_default_and_its_words() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", GUIDE, re.MULTILINE)
    told = {name: (default, text) for name, default, text in rows if "tollhouse" not in name}
    info = inspect.type_info(CatalogJudge)
    assert isinstance(info, inspect.StructType)

    for field in info.fields:
        default, text = told.pop(field.name)
        assert default == ("needed" if field.required else str(field.default).lower())
        if isinstance(field.type, inspect.LiteralType):
            assert all(f"`{word}`" in text for word in field.type.values)
    assert told == {}


def test_the_example_of_the_guide_is_sound() -> None:
    (example,) = blocks(GUIDE, "toml")
    tree = tomllib.loads(example)

    assert rules.parse(tree["backends"], {}, tree["judge"]).judge is not None
