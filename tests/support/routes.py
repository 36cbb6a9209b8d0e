"""The route table without a running gateway: no handler in it can be called."""

import inspect
from collections.abc import Callable
from unittest.mock import MagicMock

from tollhouse.api import admin_routes
from tollhouse.api import routes as given
from tollhouse.api.router import Route
from tollhouse.manage import alert_routes
from tollhouse.manage import routes as managed


def table(routes: Callable[..., tuple[Route, ...]], **chosen: object) -> tuple[Route, ...]:
    """Return the routes of a package; options are off unless they are chosen."""
    parameters = inspect.signature(routes).parameters.values()
    made = {each.name: False if each.annotation is bool else MagicMock() for each in parameters}
    return routes(**made | chosen)


ROUTES = tuple(
    route
    for package in (given, admin_routes, managed, alert_routes)
    for route in table(package.routes)
)
