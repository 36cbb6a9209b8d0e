"""The operations under `/v1` and `/compat`, and the handler or endpoint that serves each."""

from collections.abc import Iterator
from dataclasses import replace

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.handlers.costs import CostHandlers
from tollhouse.api.handlers.count_tokens import TokenCountHandlers, check_messages_head
from tollhouse.api.handlers.keys import KeyHandlers
from tollhouse.api.handlers.models import ModelHandlers
from tollhouse.api.handlers.policies import PolicyHandlers
from tollhouse.api.handlers.projects import ProjectHandlers
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.router import Route
from tollhouse.base.quotas import OrganizationQuotas
from tollhouse.contract import compat_operations, operations
from tollhouse.contract.operation import Operation
from tollhouse.contract.own_answers import ChatRequestWithOwnAnswers
from tollhouse.inference.chat import ChatEndpoint
from tollhouse.inference.messages.endpoint import MessagesEndpoint
from tollhouse.inference.messages.token_counter import TokenCounter
from tollhouse.inference.responses.endpoint import ResponsesEndpoint


def routes(
    database: AdminDatabase,
    reports: ReportReader,
    *,
    cell: str | None,
    quotas: OrganizationQuotas,
    models: ModelHandlers,
    token_counter: TokenCounter,
    messages_under_v1: bool,
    accepts_own_answers: bool,
) -> tuple[Route, ...]:
    """Return the route of each operation under `/v1` and `/compat`."""
    tokens = TokenCountHandlers(counter=token_counter)
    policies = PolicyHandlers(database=database, policies_max=quotas.policies)
    keys = KeyHandlers(database=database, cell=cell, project_keys_max=quotas.project_keys)
    projects = ProjectHandlers(database=database)
    costs = CostHandlers(reports=reports)
    return (
        Route(operation=_chat(accepts_own_answers=accepts_own_answers), endpoint=ChatEndpoint()),
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
        Route(operation=compat_operations.COUNT_MESSAGE_TOKENS, handler=tokens.count_message),
        Route(operation=compat_operations.LIST_MESSAGES_MODELS, handler=models.list_messages),
        Route(
            operation=compat_operations.RETRIEVE_MESSAGES_MODEL, handler=models.retrieve_messages
        ),
        *_message_routes(under_v1=messages_under_v1),
    )


def _chat(*, accepts_own_answers: bool) -> Operation:
    """Return the operation of chat, with the body that the operator has chosen."""
    operation = operations.CREATE_CHAT_COMPLETION
    if accepts_own_answers:
        return replace(operation, body=ChatRequestWithOwnAnswers)
    return operation


def _message_routes(*, under_v1: bool) -> Iterator[Route]:
    """Yield the route of messages, and the one under `/v1` that the operator may add."""
    operation = compat_operations.CREATE_MESSAGE
    paths = (operation.path, operation.path.removeprefix(compat_operations.MESSAGES_BASE))
    for path in paths if under_v1 else paths[:1]:
        yield Route(
            operation=replace(operation, path=path),
            endpoint=MessagesEndpoint(),
            check_head=check_messages_head,
        )
