"""Which model a request gets: decided once for each customer, except whether its backend is up."""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
import pytest

from tests.support.catalogs import BACKENDS, model
from tollhouse.backends.port import ChunkStream
from tollhouse.backends.types import UpstreamCompletion, UpstreamRequest
from tollhouse.base.clock import HeldClock
from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, time_ordered_uuid
from tollhouse.base.rates import OrganizationRate
from tollhouse.base.traffic import UNLIMITED_EVERYWHERE
from tollhouse.catalog import rules
from tollhouse.catalog.errors import ModelLocked, ModelNotFound, ModelNotReady
from tollhouse.inference.model_resolver import FIRST_EVENT_SECONDS_BESIDE_FALLBACKS, ModelResolver
from tollhouse.keys.types import Customer

T = TypeVar("T")

NAME = "example/model-a"


class UnusedBackend:
    """A backend that is asked only whether it is ready."""

    is_healthy = True
    is_ejected = False

    def is_ready(self, model: str) -> bool:  # noqa: ARG002 - the interface
        return self.is_healthy and not self.is_ejected

    def is_in_use(self, model: str) -> bool:  # noqa: ARG002 - the interface
        return self.is_healthy and not self.is_ejected

    async def complete(self, request: UpstreamRequest) -> tuple[UpstreamCompletion, str]:
        raise NotImplementedError

    async def fetch(self, request: UpstreamRequest, kind: type[T]) -> tuple[T, str]:
        raise NotImplementedError

    def stream(self, request: UpstreamRequest) -> AbstractAsyncContextManager[ChunkStream]:
        raise NotImplementedError


def resolver(backend: UnusedBackend) -> ModelResolver:
    catalog = rules.parse(BACKENDS, model(required_checks=["identity"]))
    clock = HeldClock(datetime.now(UTC))
    return ModelResolver(
        catalog,
        dict.fromkeys(catalog.backends, backend),
        price_revision=1,
        counted_bytes=OrganizationRate(clock, per_minute=1_000),
    )


def customer() -> Customer:
    return Customer(
        organization_id=OrganizationId(time_ordered_uuid()),
        project_id=ProjectId(time_ordered_uuid()),
        key_id=ProjectKeyId(time_ordered_uuid()),
        allowed_models=None,
        granted_checks=frozenset({"identity"}),
        policy_version=1,
        catalog_version=1,
        limits=UNLIMITED_EVERYWHERE,
    )


def test_a_changed_customer_is_decided_anew() -> None:
    models, before = resolver(UnusedBackend()), customer()
    locked = msgspec.structs.replace(before, granted_checks=frozenset())
    elsewhere = msgspec.structs.replace(before, allowed_models=frozenset({"another"}))

    found = models.find(NAME, before)

    assert models.find(NAME, before) is found
    with pytest.raises(ModelLocked):
        models.find(NAME, locked)
    with pytest.raises(ModelNotFound):
        models.find(NAME, elsewhere)
    with pytest.raises(ModelNotFound):
        models.find("another", before)


def test_a_model_whose_backend_does_not_answer_is_not_ready() -> None:
    backend = UnusedBackend()
    models, caller = resolver(backend), customer()
    models.find(NAME, caller)

    backend.is_healthy = False

    with pytest.raises(ModelNotReady) as failed:
        models.find(NAME, caller)
    assert (failed.value.kind, failed.value.code) == (503, "service_unavailable")
    assert failed.value.retry_after_seconds is not None
    backend.is_healthy = True
    models.find(NAME, caller)


# Aliases and fallbacks


SPARES = ("example/spare-1", "example/spare-2")


def with_fallbacks(backends: dict[str, UnusedBackend], **own: object) -> ModelResolver:
    """The named model and its fallbacks, each on a backend of its own."""
    (table,) = model().values()
    named = table | {"backend": "b0", "aliases": ["alias"], "fallbacks": list(SPARES)}
    tables = {
        NAME: named | own,
        SPARES[0]: table | {"backend": "b1"},
        SPARES[1]: table | {"backend": "b2", "required_checks": ["identity"]},
    }
    (engine,) = BACKENDS.values()
    catalog = rules.parse(dict.fromkeys(backends, engine), tables)
    clock = HeldClock(datetime.now(UTC))
    rate = OrganizationRate(clock, per_minute=1_000)
    return ModelResolver(catalog, backends, price_revision=1, counted_bytes=rate)


CASES: list[tuple[set[str], frozenset[str] | None, frozenset[str], list[str]]] = [
    # not ready, allowed models, granted checks, candidates
    (set(), None, frozenset({"identity"}), [NAME, *SPARES]),
    (set(), None, frozenset(), [NAME, SPARES[0]]),
    (set(), frozenset({NAME}), frozenset({"identity"}), [NAME]),
    ({"b0"}, None, frozenset({"identity"}), [*SPARES]),
    ({"b0", "b1"}, None, frozenset({"identity"}), [SPARES[1]]),
    ({"b1"}, frozenset({NAME, SPARES[0]}), frozenset(), [NAME]),
]


@pytest.mark.parametrize(("down", "allowed", "granted", "expected"), CASES)
@pytest.mark.parametrize("name", [NAME, "alias"])
def test_candidates_are_those_that_the_customer_may_use_and_that_are_ready(
    name: str,
    down: set[str],
    allowed: frozenset[str] | None,
    granted: frozenset[str],
    expected: list[str],
) -> None:
    backends = {each: UnusedBackend() for each in ("b0", "b1", "b2")}
    for each in down:
        backends[each].is_healthy = False
    caller = msgspec.structs.replace(customer(), allowed_models=allowed, granted_checks=granted)

    found = with_fallbacks(backends).candidates(name, caller)

    assert [resolved.id for resolved in found] == expected


def test_a_fallback_does_not_stand_in_for_a_model_that_the_customer_may_not_use() -> None:
    models = with_fallbacks({each: UnusedBackend() for each in ("b0", "b1", "b2")})
    caller = msgspec.structs.replace(customer(), allowed_models=frozenset(SPARES))

    for name in (NAME, "alias"):
        with pytest.raises(ModelNotFound):
            models.candidates(name, caller)


def test_without_any_ready_backend_the_model_is_not_ready() -> None:
    backends = {each: UnusedBackend() for each in ("b0", "b1", "b2")}
    for each in backends.values():
        each.is_healthy = False

    with pytest.raises(ModelNotReady):
        with_fallbacks(backends).candidates(NAME, customer())


@pytest.mark.parametrize(
    ("own", "seconds"),
    [
        ({}, FIRST_EVENT_SECONDS_BESIDE_FALLBACKS),
        ({"features": ["reasoning"]}, None),
        ({"features": ["reasoning"], "first_event_seconds": 20}, 20),
        ({"fallbacks": []}, None),
    ],
)
def test_a_stream_waits_less_beside_fallbacks_unless_its_model_reasons(
    own: dict[str, object], seconds: float | None
) -> None:
    models = with_fallbacks({each: UnusedBackend() for each in ("b0", "b1", "b2")}, **own)

    assert models.find(NAME, customer()).first_event_seconds == seconds


def test_where_all_are_ejected_all_are_tried() -> None:
    backends = {each: UnusedBackend() for each in ("b0", "b1", "b2")}
    models = with_fallbacks(backends)
    every = models.candidates(NAME, customer())
    for each in backends.values():
        each.is_ejected = True

    assert len(every) > 1
    assert models.candidates(NAME, customer()) == every
