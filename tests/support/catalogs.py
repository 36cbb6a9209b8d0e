"""A sound catalog, and ways to change one thing in it."""

from copy import deepcopy
from typing import Any

Tables = dict[str, dict[str, Any]]

BACKENDS: Tables = {"engine": {"replicas": ["http://127.0.0.1:8000/v1"]}}
MODELS: Tables = {
    "example/model-a": {
        "backend": "engine",
        "pricing": {"prompt": "0.0000025", "completion": "0.00001"},
        "context_length": 4096,
        "max_output_length": 1024,
    }
}


def changed(tables: Tables, name: str, changes: dict[str, Any]) -> Tables:
    """A path with dots leads to each field; nothing in its place removes it."""
    copy = deepcopy(tables)
    for path, value in changes.items():
        *outer, last = path.split(".")
        table: dict[str, Any] = copy[name]
        for step in outer:
            table = table[step]
        if value is None:
            del table[last]
        else:
            table[last] = value
    return copy


def model(**changes: Any) -> Tables:  # noqa: ANN401 - whatever TOML holds
    """The one model with other fields; two underscores stand for a dot."""
    paths = {name.replace("__", "."): value for name, value in changes.items()}
    return changed(MODELS, "example/model-a", paths)


def backend(**changes: Any) -> Tables:  # noqa: ANN401 - whatever TOML holds
    """The one backend with other fields."""
    return changed(BACKENDS, "engine", changes)
