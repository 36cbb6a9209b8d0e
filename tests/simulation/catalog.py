"""A model on each kind of backend, one that each of them falls back to, and a judge."""

from itertools import product
from typing import Final

from msgspec import structs

from tests.simulation.plan import Backend as BackendKind
from tollhouse.catalog.types import Backend, Catalog, CatalogJudge, Model, Pricing

JUDGE: Final = "judge"
SICK: Final = "sick-"
"""Before the name of a backend that fails, and has the fallback."""
CHEAPER: Final = 2
"""How many times as much a fallback costs as what it stands in for."""
_REPLICAS: Final = ("http://replica.invalid/v1",)
_SECOND: Final = "http://second.invalid/v1"
_ONE: Final = Backend(replicas=_REPLICAS, replica_names=("replica-1",))
_BILLING: Final = {
    BackendKind.STOPS.value: _ONE,
    BackendKind.RUNS_ON.value: structs.replace(_ONE, stops_when_cancelled=False),
    BackendKind.BILLS.value: structs.replace(
        _ONE, stops_when_cancelled=False, bills_without_answer=True
    ),
}


def model_of(backend: BackendKind, before: BackendKind | None = None) -> str:
    """Return the ID of the model, or of the one on a sick backend that falls back to it."""
    return f"model/{backend.value}" + (f"/{SICK}{before.value}" if before is not None else "")


def _model(backend: str, pricing: Pricing, *fallbacks: str) -> Model:
    return Model(
        backend=backend,
        fallbacks=fallbacks,
        pricing=pricing,
        context_length=16_384,
        max_output_length=8192,
        tokenizer="bytes",
        features=frozenset({"tools", "reasoning"}),
        sampling_parameters=frozenset({"n"}),
    )


_PRICES: Final = Pricing(prompt="0.000001", completion="0.000002", request="0.000003")
_HALF: Final = Pricing(prompt="0.0000005", completion="0.000001", request="0.0000015")
CATALOG: Final = Catalog(
    models={model_of(kind): _model(kind.value, _PRICES) for kind in BackendKind}
    | {
        model_of(kind, sick): _model(f"{SICK}{sick.value}", _HALF, model_of(kind))
        for kind, sick in product(BackendKind, BackendKind)
    },
    backends=_BILLING
    | {
        f"{SICK}{name}": structs.replace(
            backend, replicas=(*_REPLICAS, _SECOND), replica_names=("replica-1", "replica-2")
        )
        for name, backend in _BILLING.items()
    }
    | {JUDGE: Backend(replicas=_REPLICAS)},
    judge=CatalogJudge(backend=JUDGE, model="judge", context_length=2048, has_tokenizer=False),
)
PROMPT_PRICE: Final = 1_000_000
OUTPUT_PRICE: Final = 2_000_000
REQUEST_PRICE: Final = 3_000_000
"""The same in pico-dollars, to compute costs without the product."""
