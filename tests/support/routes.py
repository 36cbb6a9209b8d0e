"""The route table without a running gateway: no handler in it can be called."""

import inspect
from collections.abc import Callable
from unittest.mock import MagicMock

from tollhouse.api import routes as given
from tollhouse.api.router import Route
from tollhouse.manage import routes as managed


def _table(routes: Callable[..., tuple[Route, ...]]) -> tuple[Route, ...]:
    return routes(**{name: MagicMock() for name in inspect.signature(routes).parameters})


ROUTES = _table(given.routes) + _table(managed.routes)
