"""The operations under `/manage/v1`, and the handler that serves each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.handlers.models import ModelHandlers
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.router import Route
from tollhouse.base.quotas import OrganizationQuotas
from tollhouse.contract import alert_operations, organization_operations
from tollhouse.contract import manage_operations as operations
from tollhouse.contract import policy_operations as of_policies
from tollhouse.evaluation import PolicyTrials
from tollhouse.manage.admin_keys import AdminKeyHandlers
from tollhouse.manage.alerts import AlertDestinations, AlertHandlers
from tollhouse.manage.attribution import AttributionHandlers
from tollhouse.manage.audit import AuditHandlers
from tollhouse.manage.credits import CreditHandlers
from tollhouse.manage.decisions import DecisionHandlers
from tollhouse.manage.organizations import OrganizationHandlers
from tollhouse.manage.policies import ManagedPolicyHandlers, PublicationRules
from tollhouse.manage.policy_trials import PolicyTrialHandlers
from tollhouse.manage.project_keys import ProjectKeyHandlers
from tollhouse.manage.projects import ManagedProjectHandlers
from tollhouse.manage.rate_limits import RateLimitHandlers
from tollhouse.manage.requests import RequestHandlers
from tollhouse.manage.spending_limits import SpendingLimitHandlers
from tollhouse.manage.usage import UsageHandlers


def routes(
    database: AdminDatabase,
    reports: ReportReader,
    *,
    cell: str | None,
    quotas: OrganizationQuotas,
    publication: PublicationRules,
    trials: PolicyTrials,
    models: ModelHandlers,
    is_sandbox: bool,
) -> tuple[Route, ...]:
    """Return the route of each operation under `/manage/v1`."""
    organizations = OrganizationHandlers(database=database, models=models, is_sandbox=is_sandbox)
    return (
        Route(
            operation=organization_operations.RETRIEVE_ORGANIZATION, handler=organizations.retrieve
        ),
        Route(
            operation=organization_operations.LIST_ORGANIZATION_MODELS,
            handler=organizations.list_models,
        ),
        *_project_routes(database, cell, quotas),
        *_policy_routes(database, reports, publication, trials),
        *_money_routes(database, reports, is_sandbox=is_sandbox),
        *_traffic_routes(database, reports),
        *_attribution_routes(database),
    )


def _project_routes(
    database: AdminDatabase, cell: str | None, quotas: OrganizationQuotas
) -> tuple[Route, ...]:
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


def _policy_routes(
    database: AdminDatabase,
    reports: ReportReader,
    publication: PublicationRules,
    trials: PolicyTrials,
) -> tuple[Route, ...]:
    policies = ManagedPolicyHandlers(database=database, publication=publication, trials=trials)
    policy_trials = PolicyTrialHandlers(
        database=database,
        trials=trials,
        default_threshold_basis_points=publication.default_threshold_basis_points,
    )
    decisions = DecisionHandlers(reports=reports)
    return (
        Route(operation=of_policies.LIST_POLICIES, handler=policies.page),
        Route(operation=of_policies.RETRIEVE_MANAGED_POLICY, handler=policies.retrieve),
        Route(operation=of_policies.EDIT_MANAGED_POLICY, handler=policies.edit),
        Route(operation=of_policies.DELETE_POLICY, handler=policies.delete),
        Route(operation=of_policies.LIST_POLICY_VERSIONS, handler=policies.page_of_versions),
        Route(operation=of_policies.RETRIEVE_POLICY_VERSION, handler=policies.retrieve_version),
        Route(operation=of_policies.PUBLISH_POLICY, handler=policies.publish),
        Route(operation=of_policies.RESUME_POLICY, handler=policies.resume),
        Route(operation=of_policies.ROLL_BACK_POLICY, handler=policies.roll_back),
        Route(operation=of_policies.LINT_POLICY, handler=policy_trials.lint),
        Route(operation=of_policies.TEST_POLICY, handler=policy_trials.test),
        Route(operation=of_policies.LINT_UNSAVED_RULE, handler=policy_trials.lint_unsaved_rule),
        Route(operation=of_policies.TEST_UNSAVED_RULE, handler=policy_trials.test_unsaved_rule),
        Route(operation=of_policies.LIST_POLICY_DECISIONS, handler=decisions.page),
        Route(operation=of_policies.REPORT_POLICY, handler=decisions.report),
    )


def _money_routes(
    database: AdminDatabase, reports: ReportReader, *, is_sandbox: bool
) -> tuple[Route, ...]:
    credit = CreditHandlers(database=database, is_sandbox=is_sandbox)
    spending_limits = SpendingLimitHandlers(database=database)
    usage = UsageHandlers(reports=reports)
    return (
        Route(operation=operations.RETRIEVE_CREDITS, handler=credit.retrieve),
        Route(operation=operations.LIST_CREDIT_ENTRIES, handler=credit.page),
        Route(operation=operations.CREATE_TEST_PAYMENT, handler=credit.create_test_payment),
        Route(operation=operations.LIST_SPENDING_LIMITS, handler=spending_limits.page),
        Route(operation=operations.SET_SPENDING_LIMIT, handler=spending_limits.set_),
        Route(operation=operations.CLEAR_SPENDING_LIMIT, handler=spending_limits.clear),
        Route(operation=operations.REPORT_USAGE, handler=usage.report),
        Route(operation=operations.REPORT_COMPLETIONS, handler=usage.completions),
        Route(operation=operations.EXPORT_COSTS, handler=usage.focus),
    )


def _attribution_routes(database: AdminDatabase) -> tuple[Route, ...]:
    attribution = AttributionHandlers(database=database)
    return (
        Route(operation=organization_operations.RETRIEVE_ATTRIBUTION, handler=attribution.retrieve),
        Route(operation=organization_operations.SET_ATTRIBUTION, handler=attribution.change),
        Route(operation=organization_operations.DELETE_ATTRIBUTED_VALUE, handler=attribution.erase),
    )


def _traffic_routes(database: AdminDatabase, reports: ReportReader) -> tuple[Route, ...]:
    rate_limits = RateLimitHandlers(database=database)
    requests = RequestHandlers(database=database, reports=reports)
    return (
        Route(operation=operations.LIST_RATE_LIMITS, handler=rate_limits.page),
        Route(operation=operations.SET_RATE_LIMIT, handler=rate_limits.set_),
        Route(operation=operations.CLEAR_RATE_LIMIT, handler=rate_limits.clear),
        Route(operation=operations.LIST_REQUESTS, handler=requests.page),
        Route(operation=operations.RETRIEVE_REQUEST, handler=requests.retrieve),
        Route(operation=operations.REPORT_REQUESTS, handler=requests.report),
    )


def alert_routes(database: AdminDatabase, destinations: AlertDestinations) -> tuple[Route, ...]:
    """Return the route of each operation on alerts."""
    alerts = AlertHandlers(database=database, destinations=destinations)
    return (
        Route(operation=alert_operations.LIST_ALERT_SUBSCRIPTIONS, handler=alerts.page),
        Route(operation=alert_operations.CREATE_ALERT_SUBSCRIPTION, handler=alerts.create),
        Route(operation=alert_operations.RETRIEVE_ALERT_SUBSCRIPTION, handler=alerts.retrieve),
        Route(operation=alert_operations.EDIT_ALERT_SUBSCRIPTION, handler=alerts.edit),
        Route(operation=alert_operations.DELETE_ALERT_SUBSCRIPTION, handler=alerts.delete),
        Route(operation=alert_operations.ROTATE_ALERT_SECRET, handler=alerts.rotate_secret),
        Route(operation=alert_operations.TEST_ALERT_SUBSCRIPTION, handler=alerts.test),
        Route(operation=alert_operations.RETRY_ALERT_DELIVERIES, handler=alerts.retry),
        Route(operation=alert_operations.LIST_ALERT_DELIVERIES, handler=alerts.page_of_deliveries),
    )
