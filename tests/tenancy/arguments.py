"""Argument lists for scoped functions: all that a tenant has, in the name of any organization."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

import msgspec

from tests.tenancy.scoped_functions import ScopedFunction, organization_fields
from tests.tenancy.tenant import Tenant
from tests.tenancy.values import CALLER, values_by_name, values_by_type
from tollhouse.base.ids import OrganizationId


class UnknownParameter(LookupError):
    """`tests/tenancy/values.py` has nothing that this parameter could be given."""


class Arguments:
    """Values are looked up by a parameter's name where its type says too little, else by type."""

    def __init__(self, tenant: Tenant) -> None:
        self._by_name = values_by_name(tenant)
        self._by_type = values_by_type(tenant)

    def of(
        self, function: ScopedFunction, organization_id: OrganizationId
    ) -> Iterator[dict[str, Any]]:
        """Yield every combination of arguments."""
        choices = [
            self._values(function.name, name, hint) for name, hint in function.parameters.items()
        ]
        for values in itertools.product(*choices):
            yield {
                name: _in_name_of(organization_id, value)
                for name, value in zip(function.parameters, values, strict=True)
            }

    def _values(self, function: str, name: str, hint: Any) -> list[Any]:  # noqa: ANN401 - any annotation
        for known in (f"{function}({name})", name):
            if known in self._by_name:
                return self._by_name[known]
        try:
            return self._typed(hint)
        except KeyError as unknown:
            raise UnknownParameter(f"{function}({name}: {hint})") from unknown

    def _typed(self, hint: Any) -> list[Any]:  # noqa: ANN401 - any annotation
        origin, parts = get_origin(hint), get_args(hint)
        if hint in self._by_type or origin is None:
            return self._by_type[hint]
        if origin in (Union, UnionType):
            return [value for part in parts for value in self._typed(part)]
        if issubclass(origin, Mapping):
            raise KeyError(hint)
        return [(value,) for value in self._typed(parts[0])]


def _in_name_of(organization_id: OrganizationId, value: Any) -> Any:  # noqa: ANN401 - any argument
    """Return the argument with this organization wherever it names the caller's."""
    if value is CALLER:
        return organization_id
    if isinstance(value, tuple):
        parts = cast("tuple[Any, ...]", value)
        return tuple(_in_name_of(organization_id, part) for part in parts)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_in_name_of(organization_id, key): part for key, part in items}
    fields = dict.fromkeys(organization_fields(type(value)), organization_id)
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **fields)
    return replace(value, **fields) if fields else value
