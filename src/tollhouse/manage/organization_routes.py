"""The operations on the organization and its models, and the handler of each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.handlers.models import ModelHandlers
from tollhouse.api.router import Route
from tollhouse.contract import organization_operations as operations
from tollhouse.manage.organizations import OrganizationHandlers


def routes(
    database: AdminDatabase, models: ModelHandlers, *, is_sandbox: bool
) -> tuple[Route, ...]:
    """Return the route of each operation on the organization and its models."""
    organizations = OrganizationHandlers(database=database, models=models, is_sandbox=is_sandbox)
    return (
        Route(operation=operations.RETRIEVE_ORGANIZATION, handler=organizations.retrieve),
        Route(operation=operations.LIST_ORGANIZATION_MODELS, handler=organizations.list_models),
    )
