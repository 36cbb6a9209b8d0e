"""The management extension's part of the route table."""

from tollhouse.api.router import Route
from tollhouse.contract import operations
from tollhouse.manage import (
    admin_keys,
    audit,
    decisions,
    policies,
    project_keys,
    projects,
    rate_limits,
    requests,
    spending_limits,
    usage,
)
from tollhouse.manage import credits as credits_

ROUTES = (
    Route(operation=operations.LIST_PROJECTS, handler=projects.page),
    Route(operation=operations.CREATE_PROJECT, handler=projects.create),
    Route(operation=operations.RETRIEVE_PROJECT, handler=projects.retrieve),
    Route(operation=operations.EDIT_PROJECT, handler=projects.edit),
    Route(operation=operations.LIST_PROJECT_KEYS, handler=project_keys.page),
    Route(operation=operations.RETRIEVE_PROJECT_KEY, handler=project_keys.retrieve),
    Route(operation=operations.CREATE_MANAGED_PROJECT_KEY, handler=project_keys.create),
    Route(operation=operations.ROTATE_PROJECT_KEY, handler=project_keys.rotate),
    Route(operation=operations.SUSPEND_PROJECT_KEY, handler=project_keys.suspend),
    Route(operation=operations.RESUME_PROJECT_KEY, handler=project_keys.resume),
    Route(operation=operations.REVOKE_PROJECT_KEY, handler=project_keys.revoke),
    Route(operation=operations.CREATE_ADMIN_KEY, handler=admin_keys.create),
    Route(operation=operations.LIST_AUDIT, handler=audit.page),
    Route(operation=operations.LIST_POLICIES, handler=policies.page),
    Route(operation=operations.LIST_POLICY_VERSIONS, handler=policies.page_of_versions),
    Route(operation=operations.RETRIEVE_POLICY_VERSION, handler=policies.retrieve_version),
    Route(operation=operations.PUBLISH_POLICY, handler=policies.publish),
    Route(operation=operations.RESUME_POLICY, handler=policies.resume),
    Route(operation=operations.ROLL_BACK_POLICY, handler=policies.roll_back),
    Route(operation=operations.LIST_POLICY_DECISIONS, handler=decisions.page),
    Route(operation=operations.REPORT_POLICY, handler=decisions.report),
    Route(operation=operations.RETRIEVE_CREDITS, handler=credits_.retrieve),
    Route(operation=operations.LIST_CREDIT_ENTRIES, handler=credits_.page),
    Route(operation=operations.CREATE_TEST_PAYMENT, handler=credits_.create_test_payment),
    Route(operation=operations.LIST_SPENDING_LIMITS, handler=spending_limits.page),
    Route(operation=operations.SET_SPENDING_LIMIT, handler=spending_limits.set_),
    Route(operation=operations.CLEAR_SPENDING_LIMIT, handler=spending_limits.clear),
    Route(operation=operations.LIST_RATE_LIMITS, handler=rate_limits.page),
    Route(operation=operations.SET_RATE_LIMIT, handler=rate_limits.set_),
    Route(operation=operations.CLEAR_RATE_LIMIT, handler=rate_limits.clear),
    Route(operation=operations.REPORT_USAGE, handler=usage.report),
    Route(operation=operations.LIST_REQUESTS, handler=requests.page),
    Route(operation=operations.RETRIEVE_REQUEST, handler=requests.retrieve),
    Route(operation=operations.REPORT_REQUESTS, handler=requests.report),
)
