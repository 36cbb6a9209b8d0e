"""The page of metrics, from their declarations in the source."""

import ast
import inspect
from collections.abc import Iterator
from itertools import chain

from tollhouse.observability import (
    bound_metrics,
    database_metrics,
    ledger_metrics,
    metrics,
    model_metrics,
    policy_metrics,
)
from tools.reference.tables import code, table

MODULES = (
    metrics,
    model_metrics,
    policy_metrics,
    bound_metrics,
    database_metrics,
    ledger_metrics,
)
KINDS = {
    "BufferedCounter": "counter",
    "BufferedGauge": "gauge",
    "BufferedHistogram": "histogram",
}
HEAD = """\
# Metrics

Served for Prometheus at `/metrics` of the probe listener (`server.probe_port`), summed over the
workers of a host. Every label has a bounded set of values. A histogram `X` comes as `X_bucket`,
`X_sum` and `X_count`. Workers write their counts four times per second, so a worker that is killed
loses a quarter of a second of them.

"""


def page() -> str:
    """Return the page, in the order of the declarations."""
    rows = [(code(name), kind, labels, text) for name, kind, labels, text in declared()]
    return HEAD + table(("metric", "kind", "labels", "meaning"), rows)


def declared() -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, kind, labels and help text of each metric."""
    nodes = chain.from_iterable(
        ast.walk(ast.parse(inspect.getsource(module))) for module in MODULES
    )
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            kind = KINDS.get(node.func.id)
            if kind is not None:
                name, text, *rest = map(ast.literal_eval, node.args)
                labels: list[str] = rest[0] if rest else []
                yield name, kind, ", ".join(map(code, labels)), text
