"""One permission matrix: by hand, in the operations, in the router and in the document."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.identity.table import ADMIN_PERMISSIONS, CUSTOMER_PERMISSIONS, ROWS
from tests.support.routes import ROUTES
from tollhouse.base import permissions
from tollhouse.contract.operation import Operation
from tollhouse.contract.operations import OPERATIONS

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
SCHEMES = {"customer": ["customerKey", "customerHeaderKey"], "admin": ["adminKey"]}


def _row(operation: Operation) -> tuple[str, str, str, str, str, bool]:
    access = operation.access
    return (
        operation.id,
        operation.method,
        operation.path,
        access.credential.value,
        access.permission.value,
        access.survives_archive,
    )


def _expected() -> list[tuple[str, str, str, str, str, bool]]:
    return [
        (row.id, row.method, row.path, row.kind, row.permission, row.survives_archive)
        for row in ROWS
    ]


@pytest.mark.guarantee("T11")
def test_the_operations_demand_what_the_table_says() -> None:
    assert sorted(_row(operation) for operation in OPERATIONS) == sorted(_expected())


@pytest.mark.guarantee("T11")
def test_the_router_serves_every_operation_once_and_nothing_else() -> None:
    assert sorted(_row(route.operation) for route in ROUTES) == sorted(_expected())


@pytest.mark.guarantee("T11")
def test_every_operation_has_somebody_who_serves_it() -> None:
    served = {route.operation.id for route in ROUTES if route.handler or route.endpoint}

    assert served == {row.id for row in ROWS}


@pytest.mark.guarantee("T11")
def test_the_document_states_credential_and_permission_of_every_operation() -> None:
    document: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    described = {
        (operation["operationId"], method.upper(), path): operation["security"]
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }

    assert described == {
        (row.id, row.method, row.path): [{scheme: [row.permission]} for scheme in SCHEMES[row.kind]]
        for row in ROWS
    }


def test_every_admin_route_of_the_specification_lies_below_organization() -> None:
    for row in ROWS:
        is_organization_route = "/organization/" in f"{row.path}/"
        assert is_organization_route == (row.kind == "admin"), row.id


def test_the_permissions_are_those_of_the_table() -> None:
    assert sorted(permissions.ADMIN_PERMISSIONS) == sorted(ADMIN_PERMISSIONS)
    assert sorted(permissions.CUSTOMER_PERMISSIONS) == sorted(CUSTOMER_PERMISSIONS)
