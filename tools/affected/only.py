"""A pytest plugin that runs the selected tests of the given files.

`AFFECTED_SELECTION` names a file with the selection. A selected test that is gone is no error.
"""

import os
from pathlib import Path

import msgspec
import pytest

from tools.affected.selection import LEFT_OUT_MARKS, Selection


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not selected."""
    path = Path(os.environ["AFFECTED_SELECTION"])
    selection = msgspec.json.decode(path.read_bytes(), type=Selection)
    kept = [item for item in items if _is_selected(item, selection)]
    config.hook.pytest_deselected(items=list(set(items) - set(kept)))
    items[:] = kept


def _is_selected(item: pytest.Item, selection: Selection) -> bool:
    file = item.nodeid.partition("::")[0]
    if file in selection.changed:
        return True
    is_marked = any(item.get_closest_marker(mark) for mark in LEFT_OUT_MARKS)
    return not is_marked and (file in selection.files or item.nodeid in selection.tests)
