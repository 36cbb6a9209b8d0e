"""The managed operations on policies, and the handler of each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.router import Route
from tollhouse.contract import policy_operations as operations
from tollhouse.evaluation import PolicyTrials
from tollhouse.manage.decisions import DecisionHandlers
from tollhouse.manage.policies import ManagedPolicyHandlers, PublicationRules
from tollhouse.manage.policy_trials import PolicyTrialHandlers


def routes(
    database: AdminDatabase,
    reports: ReportReader,
    publication: PublicationRules,
    trials: PolicyTrials,
) -> tuple[Route, ...]:
    """Return the route of each operation on policies."""
    policies = ManagedPolicyHandlers(database=database, publication=publication, trials=trials)
    policy_trials = PolicyTrialHandlers(
        database=database,
        trials=trials,
        default_threshold_basis_points=publication.default_threshold_basis_points,
    )
    decisions = DecisionHandlers(reports=reports)
    return (
        Route(operation=operations.LIST_POLICIES, handler=policies.page),
        Route(operation=operations.RETRIEVE_MANAGED_POLICY, handler=policies.retrieve),
        Route(operation=operations.EDIT_MANAGED_POLICY, handler=policies.edit),
        Route(operation=operations.DELETE_POLICY, handler=policies.delete),
        Route(operation=operations.LIST_POLICY_VERSIONS, handler=policies.page_of_versions),
        Route(operation=operations.RETRIEVE_POLICY_VERSION, handler=policies.retrieve_version),
        Route(operation=operations.PUBLISH_POLICY, handler=policies.publish),
        Route(operation=operations.RESUME_POLICY, handler=policies.resume),
        Route(operation=operations.ROLL_BACK_POLICY, handler=policies.roll_back),
        Route(operation=operations.LINT_POLICY, handler=policy_trials.lint),
        Route(operation=operations.TEST_POLICY, handler=policy_trials.test),
        Route(operation=operations.LINT_UNSAVED_RULE, handler=policy_trials.lint_unsaved_rule),
        Route(operation=operations.TEST_UNSAVED_RULE, handler=policy_trials.test_unsaved_rule),
        Route(operation=operations.LIST_POLICY_DECISIONS, handler=decisions.page),
        Route(operation=operations.REPORT_POLICY, handler=decisions.report),
    )
