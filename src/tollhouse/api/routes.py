"""Customers' operations under `/v1` and `/compat`, and the handler or endpoint of each."""

from collections.abc import Iterator
from dataclasses import replace

from tollhouse.api.handlers.count_tokens import TokenCountHandlers, check_messages_head
from tollhouse.api.handlers.models import ModelHandlers
from tollhouse.api.router import Route
from tollhouse.contract import compat_operations, operations
from tollhouse.contract.operation import Operation
from tollhouse.contract.own_answers import ChatRequestWithOwnAnswers
from tollhouse.inference.chat import ChatEndpoint
from tollhouse.inference.messages.endpoint import MessagesEndpoint
from tollhouse.inference.messages.token_counter import TokenCounter
from tollhouse.inference.responses.endpoint import ResponsesEndpoint


def routes(
    *,
    models: ModelHandlers,
    token_counter: TokenCounter,
    messages_under_v1: bool,
    accepts_own_answers: bool,
) -> tuple[Route, ...]:
    """Return the route of each operation under `/v1` and `/compat` for customers."""
    tokens = TokenCountHandlers(counter=token_counter)
    return (
        Route(operation=_chat(accepts_own_answers=accepts_own_answers), endpoint=ChatEndpoint()),
        Route(operation=operations.CREATE_RESPONSE, endpoint=ResponsesEndpoint()),
        Route(operation=operations.COUNT_TOKENS, handler=tokens.count),
        Route(operation=operations.RETRIEVE_MODEL, handler=models.retrieve),
        Route(operation=operations.LIST_MODELS, handler=models.list_),
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
