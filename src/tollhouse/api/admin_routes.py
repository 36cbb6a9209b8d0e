"""The Admin operations under `/v1`, and the handler that serves each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.handlers.costs import CostHandlers
from tollhouse.api.handlers.keys import KeyHandlers
from tollhouse.api.handlers.policies import PolicyHandlers
from tollhouse.api.handlers.projects import ProjectHandlers
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.router import Route
from tollhouse.base.quotas import OrganizationQuotas
from tollhouse.contract import operations


def routes(
    database: AdminDatabase, reports: ReportReader, *, cell: str | None, quotas: OrganizationQuotas
) -> tuple[Route, ...]:
    """Return the route of each Admin operation under `/v1`."""
    policies = PolicyHandlers(database=database, policies_max=quotas.policies)
    keys = KeyHandlers(database=database, cell=cell, project_keys_max=quotas.project_keys)
    projects = ProjectHandlers(database=database)
    costs = CostHandlers(reports=reports)
    return (
        Route(operation=operations.CREATE_POLICY, handler=policies.create),
        Route(operation=operations.RETRIEVE_POLICY, handler=policies.retrieve),
        Route(operation=operations.EDIT_POLICY, handler=policies.edit),
        Route(operation=operations.PAUSE_POLICY, handler=policies.pause),
        Route(operation=operations.LIST_EFFECTIVE_POLICIES, handler=policies.list_effective),
        Route(operation=operations.CREATE_PROJECT_KEY, handler=keys.create_project_key),
        Route(operation=operations.ARCHIVE_PROJECT, handler=projects.archive),
        Route(operation=operations.LIST_ADMIN_KEYS, handler=keys.list_admin_keys),
        Route(operation=operations.REVOKE_ADMIN_KEY, handler=keys.revoke_admin_key),
        Route(operation=operations.REPORT_COSTS, handler=costs.report),
    )
