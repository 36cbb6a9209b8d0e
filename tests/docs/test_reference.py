"""The pages that are made from the program are complete."""

import importlib
import pkgutil
import re
import tomllib
from inspect import signature
from pathlib import Path

from msgspec.structs import fields

import tollhouse
from tests.support.routes import ROUTES
from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.chat import ChatMessage
from tollhouse.contract.operations import OPERATIONS
from tollhouse.observability.registry import registry, supervisor_registry
from tools.reference.errors import by_code, descriptions
from tools.reference.metrics import declared

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def test_every_code_has_a_page_and_a_remedy_and_no_remedy_is_left_over() -> None:
    codes = set(by_code())
    remedies = tomllib.loads((ROOT / "tools/reference/remedies.toml").read_text(encoding="utf-8"))

    assert set(remedies) == codes
    assert {path.stem for path in (REFERENCE / "errors").glob("*.md")} == codes | {"index"}


def test_every_route_that_a_remedy_names_is_served() -> None:
    remedies = (ROOT / "tools/reference/remedies.toml").read_text(encoding="utf-8")
    served = {f"{each.operation.method} {each.operation.path}" for each in ROUTES}

    named = re.findall(r"\b(?:GET|POST|PUT|PATCH|DELETE) /[^\s`]*", remedies)
    assert named
    assert [route for route in named if route not in served] == []


def test_the_remedy_of_an_unknown_member_lists_all_members_of_a_message() -> None:
    remedies = tomllib.loads((ROOT / "tools/reference/remedies.toml").read_text(encoding="utf-8"))

    _, _, after = remedies["unknown_parameter"].partition("A message of a chat completion has ")
    listed = re.findall(r"`(\w+)`", after)
    assert sorted(listed) == sorted(field.encode_name for field in fields(ChatMessage))


def test_no_page_of_an_error_speaks_to_the_developers() -> None:
    texts = [(each.code, text) for each in descriptions() for text in (*each.meanings, each.remedy)]

    developers = re.compile(r"\bOQ-|\b(?:our|we|us)\b", re.IGNORECASE)
    assert [each for each in texts if developers.search(each[1])] == []


def test_no_meaning_of_an_error_explains_arguments_of_its_class() -> None:
    explained = [
        (failure.__name__, name)
        for failure in {each for classes in by_code().values() for each in classes}
        for name in signature(failure).parameters
        if f"`{name}`" in (failure.__doc__ or "") and failure is not InvalidRequest
    ]

    assert explained == []


def test_every_operation_is_described() -> None:
    text = (REFERENCE / "operations.md").read_text(encoding="utf-8")

    missing = [one.id for one in OPERATIONS if f"`{one.method} {one.path}`: `{one.id}`" not in text]
    assert missing == []


def test_every_metric_of_any_module_is_described() -> None:
    for module in pkgutil.walk_packages(tollhouse.__path__, "tollhouse."):
        if module.name != "tollhouse.storage.migrations.env":  # which only Alembic runs
            importlib.import_module(module.name)

    registries = (registry, supervisor_registry)
    served = {family.name for each in registries for family in each.collect()}
    assert {name.removesuffix("_total") for name, *_ in declared()} == served
