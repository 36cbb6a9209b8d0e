"""The operations under `/compat`: interfaces of other providers, in front of the same models."""

from functools import partial
from typing import Final

from tollhouse.base.permissions import Permission
from tollhouse.contract import message_request, message_result, messages, models
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.operation import CHAT, COMPAT_PREFIX, COUNTING, declare

MESSAGES_BASE: Final = f"{COMPAT_PREFIX}anthropic"
"""What the base URL of an Anthropic client ends in."""
_models = partial(
    declare,
    tag="Messages",
    permission=Permission.MODELS_READ,
    survives_archive=True,
    generates_nothing="reading the catalog generates nothing",
    error_shape=ErrorShape.MESSAGES,
)
_messages = partial(
    declare,
    tag="Messages",
    permission=Permission.INFERENCE_WRITE,
    takes_session=True,
    error_shape=ErrorShape.MESSAGES,
)

CREATE_MESSAGE = _messages(
    "createMessage",
    f"POST {MESSAGES_BASE}/v1/messages",
    "Generate a message",
    "OQ-219",
    body=message_request.MessageRequest,
    result=message_result.Message,
    streams=True,
    statuses=CHAT,
)
"""In Anthropic's form, for clients whose base URL ends in `/compat/anthropic`. Held, charged and
judged like a chat completion."""
COUNT_MESSAGE_TOKENS = _messages(
    "countMessageTokens",
    f"POST {MESSAGES_BASE}/v1/messages/count_tokens",
    "Count the input tokens of a message",
    "OQ-219",
    body=messages.CountTokens,
    result=messages.TokenCount,
    generates_nothing="counting generates nothing",
    statuses=COUNTING,
)
"""The same as `POST /v1/messages/count_tokens`, for clients whose base URL ends in
`/compat/anthropic`."""
LIST_MESSAGES_MODELS = _models(
    "listMessagesModels",
    f"GET {MESSAGES_BASE}/v1/models",
    "List the models in Anthropic's form",
    "OQ-219",
    result=models.MessagesModelList,
)
"""Only the models that the key may use, in one page whatever `limit` is sent."""
RETRIEVE_MESSAGES_MODEL = _models(
    "retrieveMessagesModel",
    f"GET {MESSAGES_BASE}/v1/models/{{model}}",
    "Read one model in Anthropic's form",
    "OQ-219",
    result=models.MessagesModel,
    tail_parameter=True,
)
"""Also of a model that the organization lacks a check for."""
