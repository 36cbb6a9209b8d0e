"""One model on each kind of backend, and a judge."""

from typing import Final

from tests.simulation.plan import Backend as BackendKind
from tollhouse.catalog.types import Backend, Catalog, CatalogJudge, Model, Pricing

JUDGE: Final = "judge"
_REPLICAS: Final = ("http://replica.invalid/v1",)
_BACKENDS: Final = {
    BackendKind.STOPS.value: Backend(replicas=_REPLICAS),
    BackendKind.RUNS_ON.value: Backend(replicas=_REPLICAS, stops_when_cancelled=False),
    BackendKind.BILLS.value: Backend(
        replicas=_REPLICAS, stops_when_cancelled=False, bills_without_answer=True
    ),
    JUDGE: Backend(replicas=_REPLICAS),
}
CATALOG: Final = Catalog(
    models={
        f"model/{kind.value}": Model(
            backend=kind.value,
            pricing=Pricing(prompt="0.000001", completion="0.000002", request="0.000003"),
            context_length=16_384,
            max_output_length=8192,
            tokenizer="bytes",
            features=frozenset({"tools", "reasoning"}),
            sampling_parameters=frozenset({"n"}),
        )
        for kind in BackendKind
    },
    backends=_BACKENDS,
    judge=CatalogJudge(backend=JUDGE, model="judge", context_length=2048, has_tokenizer=False),
)
PROMPT_PRICE: Final = 1_000_000
OUTPUT_PRICE: Final = 2_000_000
REQUEST_PRICE: Final = 3_000_000
"""The same in pico-dollars, to compute costs without the product."""
