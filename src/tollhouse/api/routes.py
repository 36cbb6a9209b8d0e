"""The operations under `/v1`, and the handler or endpoint that serves each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.handlers.costs import CostHandlers
from tollhouse.api.handlers.count_tokens import TokenCountHandlers
from tollhouse.api.handlers.keys import KeyHandlers
from tollhouse.api.handlers.models import ModelHandlers
from tollhouse.api.handlers.policies import PolicyHandlers
from tollhouse.api.handlers.projects import ProjectHandlers
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.router import Route
from tollhouse.base.quotas import OrganizationQuotas
from tollhouse.contract import operations
from tollhouse.inference.chat import ChatEndpoint
from tollhouse.inference.messages.token_counter import TokenCounter
from tollhouse.inference.responses.endpoint import ResponsesEndpoint
from tollhouse.keys.secrets import Peppers


def routes(
    database: AdminDatabase,
    reports: ReportReader,
    *,
    peppers: Peppers,
    quotas: OrganizationQuotas,
    models: ModelHandlers,
    token_counter: TokenCounter,
) -> tuple[Route, ...]:
    """Return the route of each operation under `/v1`."""
    tokens = TokenCountHandlers(counter=token_counter)
    policies = PolicyHandlers(database=database, policies_max=quotas.policies)
    keys = KeyHandlers(database=database, peppers=peppers, project_keys_max=quotas.project_keys)
    projects = ProjectHandlers(database=database)
    costs = CostHandlers(reports=reports)
    return (
        Route(operation=operations.CREATE_CHAT_COMPLETION, endpoint=ChatEndpoint()),
        Route(operation=operations.CREATE_RESPONSE, endpoint=ResponsesEndpoint()),
        Route(operation=operations.COUNT_TOKENS, handler=tokens.count),
        Route(operation=operations.RETRIEVE_MODEL, handler=models.retrieve),
        Route(operation=operations.LIST_MODELS, handler=models.list_),
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
