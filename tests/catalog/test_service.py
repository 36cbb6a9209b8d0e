"""Which model a caller gets, and why not."""

import pytest

from tests.support.catalogs import BACKENDS, MODELS, model
from tollhouse.catalog import rules, service
from tollhouse.catalog.errors import ModelLocked, ModelNotFound
from tollhouse.catalog.types import Model

NAME = "example/model-a"
CATALOG = rules.parse(BACKENDS, MODELS | {"other": MODELS[NAME]})
REQUIRED = ["identity", "export-control"]


def locked() -> Model:
    return rules.parse(BACKENDS, model(required_checks=REQUIRED)).models[NAME]


@pytest.mark.parametrize("allowed", [None, frozenset({NAME}), frozenset({NAME, "x"})])
def test_a_model_is_found_by_its_exact_id(allowed: frozenset[str] | None) -> None:
    assert service.find(CATALOG, NAME, allowed_models=allowed) is CATALOG.models[NAME]


@pytest.mark.parametrize(
    ("model_id", "allowed"),
    [
        ("example/model-b", None),
        ("EXAMPLE/MODEL-A", None),
        (f"{NAME} ", None),
        ("", None),
        ("x", frozenset({"x"})),
        (NAME, frozenset({"other"})),
        (NAME, frozenset[str]()),
    ],
)
def test_what_is_unknown_or_not_allowed_is_not_found(
    model_id: str, allowed: frozenset[str] | None
) -> None:
    failure = not_found(model_id, allowed)

    assert (failure.kind, failure.code, failure.param) == (404, "model_not_found", "model")
    assert f"'{model_id}'" in failure.message


def test_the_nearest_model_that_the_key_may_use_is_named() -> None:
    nearest = {
        allowed: str(not_found(f"{NAME}-1", allowed)) for allowed in (None, frozenset({"other"}))
    }

    assert f"Did you mean `{NAME}`?" in nearest[None]
    assert "Did you mean" not in nearest[frozenset({"other"})]


def not_found(model_id: str, allowed: frozenset[str] | None) -> ModelNotFound:
    with pytest.raises(ModelNotFound) as failed:
        service.find(CATALOG, model_id, allowed_models=allowed)
    return failed.value


def test_what_is_offered_is_what_is_found() -> None:
    for allowed in (None, frozenset({"other", "x"}), frozenset[str]()):
        offered = [name for name, _ in service.offered(CATALOG, allowed_models=allowed)]

        assert offered == [name for name in CATALOG.models if allowed is None or name in allowed]


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        ((), ("identity", "export-control")),
        (("identity",), ("export-control",)),
        (("export-control", "another"), ("identity",)),
        (("export-control", "identity"), ()),
    ],
)
def test_a_model_is_locked_while_a_check_is_missing(
    granted: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    assert service.access(locked(), frozenset(granted)) == (bool(missing), missing)


def test_a_locked_model_is_refused_by_the_names_of_what_is_missing() -> None:
    with pytest.raises(ModelLocked, match="Missing: identity, export-control") as failed:
        service.require_unlocked(locked(), granted_checks=frozenset())

    assert (failed.value.kind, failed.value.code) == (403, "model_locked")
