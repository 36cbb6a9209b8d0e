"""Answers of a live server: at least one of every kind in the tables."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from tests.contract.document_lines import Json
from tests.contract.live_lines import CHAT, COUNTING, POLICIES, RESPONSES, Server
from tests.contract.tables import MESSAGE, RULE
from tests.support.deployment import Deployment
from tests.upstream.scripts import UpstreamScript

DAY_SECONDS = 86_400
MANAGE = "/manage/v1/organization"
PROJECT = "/v1/organization/projects/{project_id}"
TOOL = {"type": "function", "function": {"name": "get_time"}}
FULL_MESSAGE = {
    "role": "assistant",
    "content": None,
    "function_call": {"name": "f", "arguments": "{}"},
}
FULL_COMPLETION: Json = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "upstream-name",
    "choices": [{"index": 0, "message": FULL_MESSAGE, "finish_reason": "function_call"}],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
    "system_fingerprint": "fp_1",
    "service_tier": "default",
}


async def collect(server: Server, deployment: Deployment) -> None:
    """Ask for everything once; the order matters, because the last requests end things."""
    await _inference(server, deployment)
    await _policies(server)
    await _keys(server, deployment)
    await _reports(server, deployment)
    await _failures(server)


async def _kept(server: Server, schema: str, method: str, path: str, *body: Any) -> Any:  # noqa: ANN401
    answer = await server.ask(method, path, *body)
    return _keep(server, schema, answer, 200)


def _keep(server: Server, schema: str, answer: httpx2.Response, status: int) -> Any:  # noqa: ANN401
    assert answer.status_code == status, answer.text
    server.keep(schema, answer.json())
    return answer.json()


async def _inference(server: Server, deployment: Deployment) -> None:
    chat = {"model": server.ids["model"], "messages": [MESSAGE]}
    everything = {"n": 2, "logprobs": True, "top_logprobs": 2, "prompt_logprobs": 1}
    searching: Json = {"web_search_options": {}}
    await _kept(server, "ChatCompletion", "POST", CHAT, chat | everything | searching)
    for script, fields in (
        (UpstreamScript(tool_calls=1), {"tools": [TOOL]}),
        (UpstreamScript(reasoning_tokens=3), {"reasoning_effort": "low"}),
        (UpstreamScript(refuses=True), {}),
        (UpstreamScript(body=FULL_COMPLETION), {"functions": [{"name": "f"}]}),
    ):
        deployment.upstream.queue(script)
        await _kept(server, "ChatCompletion", "POST", CHAT, chat | fields)
    response = {"model": server.ids["model"], "input": "Hello"}
    await _kept(server, "ResponseResult", "POST", RESPONSES, response)
    await _kept(server, "TokenCount", "POST", COUNTING, chat)
    await _kept(server, "Model", "GET", "/v1/models/{model}")


async def _policies(server: Server) -> None:
    body = {
        "name": "No names",
        "rule": RULE,
        "description": "Names of people",
        "scope": "projects",
        "project_ids": [server.ids["project_id"]],
        "match_threshold_basis_points": 8000,
    }
    policy = await _kept(server, "Policy", "POST", POLICIES, body)
    path = f"{POLICIES}/{policy['id']}"
    for _ in range(2):
        at = {"revision": policy["revision"]}
        published = await server.ask("POST", f"{MANAGE}/policies/{policy['id']}/publish", at)
        assert published.status_code == 200, published.text
        policy = await _kept(server, "Policy", "GET", path)
    await _kept(server, "EffectivePolicyList", "GET", f"{PROJECT}/effective_policies")
    edit = {"revision": policy["revision"], "mode": "enforcing"}
    policy = await _kept(server, "Policy", "PATCH", path, edit)
    at = {"revision": policy["revision"]}
    await _kept(server, "Policy", "POST", f"{path}/pause", at)


async def _keys(server: Server, deployment: Deployment) -> None:
    await _kept(server, "ProjectKey", "POST", f"{PROJECT}/api_keys", {"name": "ci"})
    expires_at = datetime.now(UTC) + timedelta(days=1)
    doomed = await deployment.org.admin_key(expires_at=expires_at)
    await _kept(server, "AdminKeyList", "GET", "/v1/organization/admin_api_keys")
    path = f"/v1/organization/admin_api_keys/{doomed.key.id}"
    await _kept(server, "AdminKeyDeleted", "DELETE", path)
    project = await deployment.org.project()
    path = f"/v1/organization/projects/{project.id}/archive"
    await _kept(server, "ProjectDeleted", "POST", path)


async def _reports(server: Server, deployment: Deployment) -> None:
    await deployment.settled(await deployment.admitted())
    start = int(time.time()) - DAY_SECONDS
    query = f"start_time={start}&group_by=project_id,api_key_id,line_item"
    path = f"/v1/organization/costs?{query}"
    whole = await _kept(server, "CostPage", "GET", path)
    assert any(bucket["results"] for bucket in whole["data"])
    await _kept(server, "CostPage", "GET", f"{path}&limit=1")


async def _failures(server: Server) -> None:
    chat = await server.ask("POST", CHAT, {"model": server.ids["model"], "messages": []})
    _keep(server, "Envelope", chat, 400)
    counting = await server.ask("POST", COUNTING, {})
    _keep(server, "MessagesEnvelope", counting, 400)
