"""The page of metrics, from their declarations in the source."""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import tollhouse
from tools.reference.tables import code, table

SOURCE = Path(tollhouse.__file__).parent / "observability"
KINDS = {
    "BufferedCounter": "counter",
    "BufferedGauge": "gauge",
    "BufferedHistogram": "histogram",
    "Counter": "counter",
    "Gauge": "gauge",
}
HEAD = """\
# Metrics

Served for Prometheus at `/metrics` of the probe listener (`server.probe_port`), summed over the
workers of a host. Every label has a bounded set of values. A histogram `X` comes as `X_bucket`,
`X_sum` and `X_count`. Workers write their counts four times per second, so a worker that is killed
loses a quarter of a second of them.

"""


def page() -> str:
    """Return the page, in the order of the modules and of their declarations."""
    rows = [(code(name), kind, labels, text) for name, kind, labels, text in declared()]
    return HEAD + table(("metric", "kind", "labels", "meaning"), rows)


def declared() -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, kind, labels and help text of each metric."""
    nodes = chain.from_iterable(
        ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(SOURCE.glob("*.py"))
    )
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            kind = KINDS.get(node.func.id)
            if kind is not None:
                name, text, *rest = map(ast.literal_eval, node.args)
                labels: list[str] = rest[0] if rest else []
                yield name, kind, ", ".join(map(code, labels)), text
