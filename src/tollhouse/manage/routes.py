"""The management extension's part of the route table."""

from tollhouse.api.router import Route
from tollhouse.contract import operations
from tollhouse.manage import admin_keys, audit, project_keys, projects, usage

ROUTES = (
    Route(operation=operations.LIST_PROJECTS, handler=projects.page),
    Route(operation=operations.CREATE_PROJECT, handler=projects.create),
    Route(operation=operations.RETRIEVE_PROJECT, handler=projects.retrieve),
    Route(operation=operations.RENAME_PROJECT, handler=projects.rename),
    Route(operation=operations.LIST_PROJECT_KEYS, handler=project_keys.page),
    Route(operation=operations.RETRIEVE_PROJECT_KEY, handler=project_keys.retrieve),
    Route(operation=operations.CREATE_MANAGED_PROJECT_KEY, handler=project_keys.create),
    Route(operation=operations.ROTATE_PROJECT_KEY, handler=project_keys.rotate),
    Route(operation=operations.SUSPEND_PROJECT_KEY, handler=project_keys.suspend),
    Route(operation=operations.RESUME_PROJECT_KEY, handler=project_keys.resume),
    Route(operation=operations.REVOKE_PROJECT_KEY, handler=project_keys.revoke),
    Route(operation=operations.CREATE_ADMIN_KEY, handler=admin_keys.create),
    Route(operation=operations.LIST_AUDIT, handler=audit.page),
    Route(operation=operations.REPORT_USAGE, handler=usage.report),
)
