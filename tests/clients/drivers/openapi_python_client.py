"""Calls of the client that openapi-python-client generates. Prints what they gave as JSON."""

import json
import os
import time

from tollhouse_client import AuthenticatedClient
from tollhouse_client.api.inference import count_tokens, create_chat_completion, create_response
from tollhouse_client.api.models import list_models, retrieve_model
from tollhouse_client.api.policies import create_policy, edit_policy, pause_policy, publish_policy
from tollhouse_client.api.project_keys import create_project_key
from tollhouse_client.api.reports import report_costs
from tollhouse_client.models.chat_completion import ChatCompletion
from tollhouse_client.models.chat_message import ChatMessage
from tollhouse_client.models.chat_message_role import ChatMessageRole
from tollhouse_client.models.chat_request import ChatRequest
from tollhouse_client.models.chat_request_tools_type_0_item import ChatRequestToolsType0Item
from tollhouse_client.models.cost_page import CostPage
from tollhouse_client.models.count_tokens import CountTokens
from tollhouse_client.models.count_tokens_messages_item import CountTokensMessagesItem
from tollhouse_client.models.create_policy import CreatePolicy
from tollhouse_client.models.create_project_key import CreateProjectKey
from tollhouse_client.models.edit_policy import EditPolicy
from tollhouse_client.models.edit_policy_mode import EditPolicyMode
from tollhouse_client.models.envelope import Envelope
from tollhouse_client.models.model import Model
from tollhouse_client.models.model_list import ModelList
from tollhouse_client.models.pause_policy import PausePolicy
from tollhouse_client.models.policy import Policy
from tollhouse_client.models.policy_in_force import PolicyInForce
from tollhouse_client.models.project_key import ProjectKey
from tollhouse_client.models.publish_policy import PublishPolicy
from tollhouse_client.models.response_request import ResponseRequest
from tollhouse_client.models.response_result import ResponseResult
from tollhouse_client.models.token_count import TokenCount

MODEL = os.environ["MODEL"]
customer = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["KEY"])
admin = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["ADMIN_KEY"])


def chat() -> object:
    messages = [ChatMessage(role=ChatMessageRole.USER, content="Say it.")]
    made = create_chat_completion.sync(
        client=customer, body=ChatRequest(model=MODEL, messages=messages)
    )
    assert isinstance(made, ChatCompletion)
    return made.choices[0].message.content


def tools() -> object:
    messages = [ChatMessage(role=ChatMessageRole.USER, content="What is the weather?")]
    weather = ChatRequestToolsType0Item.from_dict(
        {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    )
    made = create_chat_completion.sync(
        client=customer, body=ChatRequest(model=MODEL, messages=messages, tools=[weather])
    )
    assert isinstance(made, ChatCompletion)
    calls = made.choices[0].message.tool_calls
    assert isinstance(calls, list)
    return calls[0]["function"]["name"]


def responses() -> object:
    made = create_response.sync(
        client=customer, body=ResponseRequest(model=MODEL, input_="Say it.")
    )
    assert isinstance(made, ResponseResult)
    return made.output[0]["content"][0]["text"]


def count() -> object:
    message = CountTokensMessagesItem.from_dict({"role": "user", "content": "How much is it?"})
    made = count_tokens.sync(client=customer, body=CountTokens(model=MODEL, messages=[message]))
    assert isinstance(made, TokenCount)
    return made.input_tokens > 0


def models() -> object:
    found = list_models.sync(client=customer)
    one = retrieve_model.sync(model=MODEL, client=customer)
    assert isinstance(found, ModelList)
    assert isinstance(one, Model)
    return [one.id, one.id in [each.id for each in found.data]]


def policies() -> object:
    made = create_policy.sync(
        client=admin,
        body=CreatePolicy(name="Names", rule="Does the text name a person?"),
        idempotency_key=f"policy-{time.time_ns()}",
    )
    assert isinstance(made, Policy)
    change = EditPolicy(revision=made.revision, mode=EditPolicyMode.ENFORCING)
    edited = edit_policy.sync(policy_id=made.id, client=admin, body=change)
    stale = edit_policy.sync(policy_id=made.id, client=admin, body=change)
    assert isinstance(edited, Policy)
    assert isinstance(stale, Envelope)
    published = publish_policy.sync(
        policy_id=made.id,
        client=admin,
        body=PublishPolicy(revision=edited.revision, refuses_until_judged=True),
    )
    assert isinstance(published, PolicyInForce)
    paused = pause_policy.sync(
        policy_id=made.id, client=admin, body=PausePolicy(revision=published.revision)
    )
    assert isinstance(paused, Policy)
    return [made.state, edited.revision, stale.error.code, published.state, paused.state]


def keys() -> object:
    def created() -> ProjectKey:
        made = create_project_key.sync(
            project_id=os.environ["PROJECT"],
            client=admin,
            body=CreateProjectKey(name="search"),
            idempotency_key=name,
        )
        assert isinstance(made, ProjectKey)
        return made

    name = f"key-{time.time_ns()}"
    first, again = created(), created()
    return [first.id == again.id, first.value == again.value]


def costs() -> object:
    start = int(time.time()) - 8 * 86_400
    first = report_costs.sync(client=admin, start_time=start)
    assert isinstance(first, CostPage)
    assert isinstance(first.next_page, str)
    second = report_costs.sync(client=admin, start_time=start, page=first.next_page)
    assert isinstance(second, CostPage)
    return [len(first.data), first.has_more, second.has_more]


CALLS = (chat, tools, responses, count, models, policies, keys, costs)
print(json.dumps({call.__name__: call() for call in CALLS}))
