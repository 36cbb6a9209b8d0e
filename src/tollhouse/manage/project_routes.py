"""The managed operations on projects, keys and the audit log, and the handler of each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.router import Route
from tollhouse.base.quotas import OrganizationQuotas
from tollhouse.contract import manage_operations as operations
from tollhouse.contract import organization_operations
from tollhouse.manage.admin_keys import AdminKeyHandlers
from tollhouse.manage.audit import AuditHandlers
from tollhouse.manage.project_keys import ProjectKeyHandlers
from tollhouse.manage.projects import ManagedProjectHandlers


def routes(
    database: AdminDatabase, cell: str | None, quotas: OrganizationQuotas
) -> tuple[Route, ...]:
    """Return the route of each operation on projects, keys and the audit log."""
    projects = ManagedProjectHandlers(database=database, projects_max=quotas.projects)
    project_keys = ProjectKeyHandlers(
        database=database, cell=cell, project_keys_max=quotas.project_keys
    )
    admin_keys = AdminKeyHandlers(database=database, cell=cell, admin_keys_max=quotas.admin_keys)
    audit = AuditHandlers(database=database)
    return (
        Route(operation=operations.LIST_PROJECTS, handler=projects.page),
        Route(operation=operations.CREATE_PROJECT, handler=projects.create),
        Route(operation=operations.RETRIEVE_PROJECT, handler=projects.retrieve),
        Route(operation=operations.EDIT_PROJECT, handler=projects.edit),
        Route(operation=operations.LIST_PROJECT_KEYS, handler=project_keys.page),
        Route(operation=operations.RETRIEVE_PROJECT_KEY, handler=project_keys.retrieve),
        Route(operation=operations.CREATE_MANAGED_PROJECT_KEY, handler=project_keys.create),
        Route(operation=operations.ROTATE_PROJECT_KEY, handler=project_keys.rotate),
        Route(operation=operations.END_PREVIOUS_VALUE, handler=project_keys.end_previous_value),
        Route(operation=operations.SUSPEND_PROJECT_KEY, handler=project_keys.suspend),
        Route(operation=operations.RESUME_PROJECT_KEY, handler=project_keys.resume),
        Route(operation=operations.REVOKE_PROJECT_KEY, handler=project_keys.revoke),
        Route(operation=organization_operations.CREATE_ADMIN_KEY, handler=admin_keys.create),
        Route(operation=organization_operations.RETRIEVE_ADMIN_KEY, handler=admin_keys.retrieve),
        Route(operation=organization_operations.NARROW_ADMIN_KEY, handler=admin_keys.narrow),
        Route(operation=organization_operations.LIST_AUDIT, handler=audit.page),
    )
