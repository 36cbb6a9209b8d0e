"""Every function that runs SQL for one organization, found in the package itself.

Such a function takes a transaction or a database first. It takes its organization as an ID, in a
type that holds one, or as that of a mutation.
"""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, get_args, get_type_hints

import msgspec

import tollhouse
from tollhouse.base.ids import OrganizationId
from tollhouse.storage.database import Database, Mutation, Transaction

WITHOUT_TENANTS = (
    "tollhouse.cli",
    "tollhouse.trial",
    "tollhouse.storage.migrations",
)
"""The operator's commands, engines for tests, and the schema."""
RUNNERS = ("fetch_one(", "fetch_all(", "fetch_value(", ".execute(")
MARK = "# all organizations:"
"""How a function of a store says that it is no organization's, and why."""


@dataclass(frozen=True)
class ScopedFunction:
    """A function, the type of its first parameter, and the types of the others."""

    name: str
    call: Callable[..., Any]
    first: type[Transaction] | type[Database]
    parameters: dict[str, Any]


def found() -> Iterator[ScopedFunction]:
    for module in _modules():
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not _is_for_all(function):
                yield from _scoped(f"{module.__name__.removeprefix('tollhouse.')}.{name}", function)


def organization_fields(kind: Any) -> list[str]:  # noqa: ANN401 - any annotation
    """Return the names of the fields of a record that hold its organization."""
    if not (dataclasses.is_dataclass(kind) or _is_struct(kind)):
        return []
    return [name for name, hint in get_type_hints(kind).items() if hint is OrganizationId]


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(tollhouse.__path__, "tollhouse."):
        if not found.name.startswith(WITHOUT_TENANTS):
            module = importlib.import_module(found.name)
            if any(runner in inspect.getsource(module) for runner in RUNNERS):
                yield module


def _is_for_all(function: Callable[..., Any]) -> bool:
    lines = inspect.getsource(function).splitlines()
    return MARK in next(line for line in lines if line.lstrip().startswith(("def ", "async def ")))


def _scoped(name: str, function: Callable[..., Any]) -> Iterator[ScopedFunction]:
    hints = {key: hint for key, hint in get_type_hints(function).items() if key != "return"}
    first = next(iter(hints.values()), None)
    is_async = inspect.iscoroutinefunction(function) or hasattr(function, "__wrapped__")
    if first not in (Transaction, Mutation, Database) or not is_async:
        return
    others = dict(list(hints.items())[1:])
    if first is Mutation or any(map(_holds_organization, others.values())):
        yield ScopedFunction(name=name, call=function, first=first, parameters=others)


def _holds_organization(hint: Any) -> bool:  # noqa: ANN401 - any annotation
    if hint is OrganizationId or organization_fields(hint):
        return True
    return any(map(_holds_organization, get_args(hint)))


def _is_struct(kind: Any) -> bool:  # noqa: ANN401 - any annotation
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
