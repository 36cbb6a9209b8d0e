"""A label that a caller sends stands in the record of its request, and finds it."""

import pytest

from tests.messages.test_messages import PATH as MESSAGES
from tests.messages.test_messages import message
from tests.support.deployment import MODEL, Deployment, chat

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUESTS = "/manage/v1/organization/requests"
LABEL = "X-Tollhouse-Label"


async def test_a_label_is_in_the_record_and_finds_it(deployment: Deployment) -> None:
    sent: dict[str, str | None] = {}
    async with deployment.customer() as client:
        for path, body in (
            ("/v1/chat/completions", chat(user="alice", metadata={"team": "blue"})),
            ("/v1/responses", {"model": MODEL, "input": "Hello"}),
            (MESSAGES, message()),
        ):
            for label in ("team-red", None):
                headers = {} if label is None else {LABEL: label}
                answer = await client.post(path, json=body, headers=headers)
                assert answer.status_code == 200, answer.text
                sent[answer.headers["x-request-id"]] = label
    records = {request_id: await deployment.record(request_id) for request_id in sent}
    async with deployment.administrator() as admin:
        found = (await admin.get(REQUESTS, params={"label": "team-red"})).json()["data"]
        none = (await admin.get(REQUESTS, params={"label": "team"})).json()["data"]

    assert {request_id: record["label"] for request_id, record in records.items()} == sent
    assert {record["id"] for record in found} == {each for each, label in sent.items() if label}
    assert none == []


async def test_a_label_is_cut_and_has_no_key_and_no_control_character(
    deployment: Deployment,
) -> None:
    key = deployment.key.value
    async with deployment.customer() as client:
        answers = [
            await client.post("/v1/chat/completions", json=chat(), headers={LABEL: label})
            for label in ("x" * 200, f"a {key}", "a\tb", "")
        ]
    records = [await deployment.record(answer.headers["x-request-id"]) for answer in answers]

    assert [record["label"] for record in records] == ["x" * 128, "a thp_[redacted]", "a?b", None]
