"""The given interface, all of it: who serves each operation, or that nobody does yet."""

from tollhouse.api import costs, count_tokens, keys, models, policies, projects
from tollhouse.api.router import Route
from tollhouse.contract import operations
from tollhouse.inference.chat import ChatSurface
from tollhouse.inference.responses import ResponsesSurface

ROUTES = (
    Route(operation=operations.CREATE_CHAT_COMPLETION, surface=ChatSurface()),
    Route(operation=operations.CREATE_RESPONSE, surface=ResponsesSurface()),
    Route(operation=operations.COUNT_TOKENS, handler=count_tokens.count),
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
