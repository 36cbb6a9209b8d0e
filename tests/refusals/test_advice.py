"""Refusals over HTTP say what happened, with the values that matter, and what to do next."""

import re
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest

from tests.refusals.conftest import CHAT, COUNT_TOKENS, PUBLIC_URL, RESPONSES
from tests.support.deployment import MODEL, Deployment
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import new_policy
from tests.support.routes import ROUTES
from tollhouse.base.ids import policy_id_text
from tollhouse.contract.operation import Operation
from tollhouse.contract.operations import OPERATIONS

pytestmark = pytest.mark.asyncio(loop_scope="module")

ORGANIZATION = "/v1/organization"
INFERENCE = [CHAT, RESPONSES, COUNT_TOKENS]
SERVED = {(each.operation.method, each.operation.path) for each in ROUTES}
MANAGED = [each.operation for each in ROUTES if each.operation.path.startswith("/manage/v1/")]


def body(path: str, **fields: object) -> dict[str, Any]:
    name = "input" if path == RESPONSES else "messages"
    return {"model": MODEL, name: [{"role": "user", "content": "Hi"}], **fields}


def refused(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), answer.text
    assert error["doc_url"] == f"{PUBLIC_URL}/docs/errors/{code}"
    return error


# Keys


@pytest.mark.parametrize(
    ("method", "path", "is_customers"),
    [
        ("POST", CHAT, True),
        ("POST", RESPONSES, True),
        ("POST", COUNT_TOKENS, True),
        ("GET", "/v1/models", True),
        ("GET", f"{ORGANIZATION}/costs", False),
        ("GET", "/manage/v1/organization/projects", False),
    ],
)
async def test_the_wrong_kind_of_key_is_told_which_is_needed_and_where_to_make_one(
    deployment: Deployment, method: str, path: str, *, is_customers: bool
) -> None:
    async with deployment.administrator() if is_customers else deployment.customer() as client:
        answer = await client.request(method, path)

    message = refused(answer, 403, "wrong_key_type")["message"]
    needed, sent = ("project key", "Admin API key")[:: 1 if is_customers else -1]
    assert f"takes a{'n' if needed[0] == 'A' else ''} {needed}" in message
    assert f"{sent} was sent" in message
    routes = re.findall(r"`(POST) (/\S+)`", message)
    assert routes
    assert set(routes) <= SERVED
    assert ("thp_" if is_customers else "tha_") in message


# Policies


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_policies_that_are_not_found_are_listed_and_no_others(
    client: httpx2.AsyncClient, org: OrganizationFixture, other_org: OrganizationFixture, path: str
) -> None:
    known = policy_id_text((await new_policy(org, ["publish"])).id)
    draft = policy_id_text((await new_policy(org)).id)
    paused = policy_id_text((await new_policy(org, ["publish", "pause"])).id)
    foreign = policy_id_text((await new_policy(other_org, ["publish"])).id)
    never = f"pol_{uuid4().hex}"
    sent = [known, never, "nonsense", paused, foreign, draft, never]

    answer = await client.post(path, json=body(path, policy_ids=sent))

    error = refused(answer, 404, "policy_not_found")
    assert error["param"] == "policy_ids"
    listed = ", ".join(f"'{each}'" for each in (never, "nonsense", foreign, draft))
    assert f"has one of the IDs {listed}. Take them out of 'policy_ids'" in error["message"]
    assert known not in error["message"]
    assert paused not in error["message"]


async def test_a_paused_policy_does_not_hide_one_that_is_not_found(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    paused = policy_id_text((await new_policy(org, ["publish", "pause"])).id)

    answer = await client.post(CHAT, json=body(CHAT, policy_ids=[paused, "nonsense"]))

    message = refused(answer, 404, "policy_not_found")["message"]
    assert "has the ID 'nonsense'. Take it out of 'policy_ids'" in message


async def test_a_long_list_of_unknown_policies_is_cut(client: httpx2.AsyncClient) -> None:
    sent = [f"x{number}" for number in range(1000)]

    answer = await client.post(CHAT, json=body(CHAT, policy_ids=sent))

    message = refused(answer, 404, "policy_not_found")["message"]
    assert "'x19' and 980 more." in message


async def test_unknown_projects_of_a_policy_and_of_a_report_are_listed(
    deployment: Deployment,
) -> None:
    known, never = str(deployment.project.id), str(uuid4())
    policy = {"name": "n", "rule": "Is it?", "project_ids": [known, never]}
    async with deployment.administrator() as client:
        unknown = await client.post(
            f"{ORGANIZATION}/policies", json=policy, headers={"Idempotency-Key": uuid4().hex}
        )
        unreadable = await client.post(
            f"{ORGANIZATION}/policies",
            json=policy | {"project_ids": [known, "nonsense"]},
            headers={"Idempotency-Key": uuid4().hex},
        )
        costs = await client.get(
            f"{ORGANIZATION}/costs", params={"start_time": 0, "project_ids": f"{known},{never}"}
        )
        usage = await client.get(
            "/manage/v1/organization/usage", params={"start_time": 0, "api_key_ids": never}
        )
        several = await client.get(
            f"{ORGANIZATION}/costs", params={"start_time": 0, "project_ids": f"{uuid4()},{never}"}
        )

    for answer, code in (
        (unknown, "project_not_found"),
        (costs, "project_not_found"),
        (usage, "api_key_not_found"),
    ):
        message = refused(answer, 404, code)["message"]
        assert f"has the ID '{never}'." in message
        assert known not in message
    assert "'nonsense'" in refused(unreadable, 404, "project_not_found")["message"]
    message = refused(several, 404, "project_not_found")["message"]
    assert "has one of the IDs '" in message


# Bodies


async def test_the_entry_of_a_logit_bias_that_does_not_fit_is_named(
    client: httpx2.AsyncClient,
) -> None:
    biases: list[tuple[dict[str, Any], str]] = [
        ({"1": 1, "50256": 101, "2": 1000}, "expected at most 100"),
        ({"1": 1, "50256": -101}, "expected at least -100"),
        ({"1": 1, "50256": "high"}, "expected a number, got a string"),
    ]
    for bias, words in biases:
        answer = await client.post(CHAT, json=body(CHAT, logit_bias=bias))

        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, "logit_bias")
        assert words in error["message"]
        assert error["message"].endswith("The entry that does not fit is '50256'.")


@pytest.mark.parametrize("entry", [{"name": "v" * 513}, {"n" * 65: "v"}, {"name": 1}])
async def test_the_entry_of_metadata_that_does_not_fit_is_named(
    client: httpx2.AsyncClient, entry: dict[str, Any]
) -> None:
    answer = await client.post(RESPONSES, json=body(RESPONSES, metadata={"fine": "v"} | entry))

    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, "metadata")
    assert f"'{next(iter(entry))}'" in error["message"]


@pytest.mark.parametrize("path", INFERENCE)
@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{"model": "m",\n "n": 1\n "stop": "x"}', "line 3, column 2 (byte 24)"),
        (b'{"model": "m",}', "line 1, column 15 (byte 14)"),
        ('{"model": "ä\n"}'.encode(), "line 1, column 13 (byte 13)"),
        (b'{"model": "m"', "line 1, column 14 (byte 13)"),
        (b'{"model": "\xff"}', "line 1, column 12 (byte 11)"),
        (b'{"model": "m"} {}', "line 1, column 16 (byte 15)"),
        (rb'{"model": "\x"}', "line 1, column 13 (byte 12)"),
        ('{"ä":\n "\\u0000"}'.encode(), "line 2, column 3 (byte 9)"),
        ('{"ä": "1e999 \\"", "n": [1.5,\n -1e999]}'.encode(), "line 2, column 2 (byte 31)"),
        (b'{"n": ' + b"9" * 4_300 + b', "m": ' + b"9" * 4_301 + b"}", "(byte 4313)"),
        (b'{"n": -' + b"9" * 4_300 + b"}", "line 1, column 7 (byte 6)"),
    ],
)
async def test_a_body_that_is_no_json_is_refused_with_the_place_of_the_fault(
    client: httpx2.AsyncClient, path: str, content: bytes, place: str
) -> None:
    headers = {"content-type": "application/json"}

    answer = await client.post(path, content=content, headers=headers)

    assert place in refused(answer, 400, "invalid_json")["message"]


async def test_a_name_that_stands_twice_is_named(client: httpx2.AsyncClient) -> None:
    headers = {"content-type": "application/json"}
    content = b'{"model": "m", "messages": [{"role": "user", "role": "tool"}]}'

    answer = await client.post(CHAT, content=content, headers=headers)

    assert "same name: 'role'." in refused(answer, 400, "invalid_json")["message"]


@pytest.mark.parametrize("member", ["refusal", "annotations", "provider_specific_fields", "audio"])
async def test_a_member_of_an_answer_that_no_request_has_is_told_to_be_dropped(
    client: httpx2.AsyncClient, member: str
) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", member: None}]

    answer = await client.post(CHAT, json={"model": MODEL, "messages": messages})

    error = refused(answer, 400, "unknown_parameter")
    assert error["param"] == f"messages[1].{member}"
    assert "drop this member before you send the answer back" in error["message"]
    assert f"See {PUBLIC_URL}/docs/errors/unknown_parameter for more." in error["message"]


@pytest.mark.parametrize(
    ("path", "name", "nearest"),
    [
        (CHAT, "max_token", "max_tokens"),
        (RESPONSES, "max_output_token", "max_output_tokens"),
        (COUNT_TOKENS, "tool", "tools"),
    ],
)
async def test_an_unknown_parameter_is_told_with_the_nearest_known_one(
    client: httpx2.AsyncClient, path: str, name: str, nearest: str
) -> None:
    near = await client.post(path, json=body(path, **{name: 1}))
    far = await client.post(path, json=body(path, zzzzzz=1))

    assert f"Did you mean `{nearest}`?" in refused(near, 400, "unknown_parameter")["message"]
    assert refused(far, 400, "unknown_parameter")["message"].endswith("Leave it out.")


async def test_an_unknown_member_of_a_message_is_told_with_the_nearest_known_one(
    client: httpx2.AsyncClient,
) -> None:
    messages = [{"role": "user", "contnt": "x"}]

    answer = await client.post(CHAT, json={"model": MODEL, "messages": messages})

    error = refused(answer, 400, "unknown_parameter")
    assert error["param"] == "messages[0].contnt"
    assert "Did you mean `content`?" in error["message"]


async def test_an_unknown_query_parameter_is_told_with_the_nearest_known_one(
    deployment: Deployment,
) -> None:
    async with deployment.administrator() as client:
        answer = await client.get(f"{ORGANIZATION}/costs", params={"start_tim": 0})

    assert "Did you mean `start_time`?" in refused(answer, 400, "unknown_parameter")["message"]


# Addresses


def given_path(operation: Operation) -> str:
    return re.sub(r"{\w+}", "x", operation.path.removeprefix("/manage"))


@pytest.mark.parametrize(
    "operation",
    [each for each in MANAGED if (each.method, each.path.removeprefix("/manage")) not in SERVED],
    ids=lambda operation: operation.id,
)
async def test_administration_under_v1_is_answered_with_its_path_under_manage(
    gateway: Gateway, operation: Operation
) -> None:
    async with gateway.client() as client:
        answer = await client.request(operation.method, given_path(operation))

    message = refused(answer, 404, "unknown_url")["message"]
    assert f"use `{operation.method} {operation.path}`." in message
    assert "'/manage/v1'" in message


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("GET", f"{ORGANIZATION}/usage/embeddings", "`GET /manage/v1/organization/usage`"),
        ("POST", "/manage/v1/chat/completions", "use `POST /v1/chat/completions`"),
        ("GET", "/manage/v1/models", "end in '/v1'"),
        ("POST", "/compat/anthropic/v1/responses", "use `POST /v1/responses`"),
        ("GET", "/manage/v1/organization/audit_logs", "`GET /manage/v1/organization/audit`"),
        ("GET", f"{ORGANIZATION}/audit_logs", "`GET /manage/v1/organization/audit`"),
        ("POST", f"{ORGANIZATION}/projects/x", "`PATCH /manage/v1/organization/projects/"),
        ("DELETE", f"{ORGANIZATION}/projects/x/api_keys/y", "/revoke`"),
        ("GET", "/organization/projects", "`GET /manage/v1/organization/projects`"),
        ("POST", "/chat/completions", "lacks '/v1'"),
        ("POST", "/v1/v1/responses", "'/v1' twice"),
        ("POST", "/v1/responses/", "Leave out the slash"),
        ("GET", f"{ORGANIZATION}/users", "Check the path and the base URL."),
        ("POST", "/v1/nothing", "Check the path and the base URL."),
        ("POST", "/v1/embeddings", "does not serve embeddings"),
        ("POST", "/embeddings", "does not serve embeddings"),
        ("POST", "/v1/images/generations", "does not serve images"),
        ("POST", "/v1/audio/transcriptions", "does not serve audio"),
        ("GET", "/v1/batches", "does not serve batches"),
        ("GET", "/v1/files/file-1/content", "does not serve files"),
        ("POST", "/v1/completions", "does not serve legacy completions"),
        ("GET", "/v1/realtime", "does not serve realtime sessions"),
        ("GET", "/" + "x" * 9_000, "Check the path and the base URL."),
    ],
)
async def test_an_unknown_url_is_answered_with_what_was_probably_meant(
    gateway: Gateway, method: str, path: str, words: str
) -> None:
    async with gateway.client() as client:
        answer = await client.request(method, path)

    assert words in refused(answer, 404, "unknown_url")["message"]


async def test_a_method_that_nothing_has_stays_405(gateway: Gateway) -> None:
    async with gateway.client() as client:
        answer = await client.delete(f"{ORGANIZATION}/costs")

    refused(answer, 405, "method_not_allowed")


async def test_the_path_that_was_sent_is_never_repeated(gateway: Gateway) -> None:
    async with gateway.client() as client:
        answer = await client.get(f"{ORGANIZATION}/projects/a-secret/api_keys")

    assert "a-secret" not in answer.text


async def test_the_official_sdk_is_told_where_administration_is(deployment: Deployment) -> None:
    admin = deployment.admin.value
    async with openai.AsyncOpenAI(
        base_url=f"{deployment.gateway.base_url}/v1",
        api_key=admin,
        admin_api_key=admin,
        max_retries=0,
    ) as sdk:
        organization = sdk.admin.organization
        for call, path in (
            (organization.projects.list(), "GET /manage/v1/organization/projects"),
            (organization.projects.create(name="x"), "POST /manage/v1/organization/projects"),
            (
                organization.admin_api_keys.create(name="x"),
                "POST /manage/v1/organization/admin_api_keys",
            ),
            (
                organization.usage.completions(start_time=0),
                "GET /manage/v1/organization/usage/completions",
            ),
        ):
            with pytest.raises(openai.NotFoundError, match=f"`{path}`"):
                await call


async def test_every_route_that_a_message_names_is_served() -> None:
    """Those of messages that are written by hand; the others are made from the table."""
    paths = {operation.path for operation in OPERATIONS}

    assert {
        "/manage/v1/organization/policies",
        "/manage/v1/organization/projects",
        "/manage/v1/organization/projects/{project_id}/api_keys",
    } <= paths
