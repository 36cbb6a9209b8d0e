"""The operations on policies, as a client of the interface sees them."""

import secrets
from dataclasses import dataclass
from typing import Any

import httpx2

GIVEN = "/v1/organization"
MANAGE = "/manage/v1/organization"
RULE = "Does the text name a person?"

MANAGED_FIELDS = {"ends_answer_early", "preflight"}

UNJUDGED = {"refuses_until_judged": True}
"""The gateways of these tests have no judge."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Policies:
    client: httpx2.AsyncClient

    async def create(self, **fields: object) -> httpx2.Response:
        headers = {"Idempotency-Key": secrets.token_hex(8)}
        body = {"name": "No names", "rule": RULE} | fields
        return await self.client.post(f"{GIVEN}/policies", json=body, headers=headers)

    async def retrieve(self, policy_id: str) -> httpx2.Response:
        return await self.client.get(f"{GIVEN}/policies/{policy_id}")

    async def retrieve_managed(self, policy_id: str) -> httpx2.Response:
        """As the routes that publish show it."""
        return await self.client.get(f"{MANAGE}/policies/{policy_id}")

    async def edit(self, policy_id: str, revision: int, **fields: object) -> httpx2.Response:
        body = {"revision": revision} | fields
        return await self.client.patch(f"{GIVEN}/policies/{policy_id}", json=body)

    async def pause(self, policy_id: str, revision: int) -> httpx2.Response:
        path = f"{GIVEN}/policies/{policy_id}/pause"
        return await self.client.post(path, json={"revision": revision})

    async def publish(self, policy_id: str, revision: int) -> httpx2.Response:
        return await self._manage(policy_id, "publish", {"revision": revision, **UNJUDGED})

    async def resume(self, policy_id: str, revision: int) -> httpx2.Response:
        return await self._manage(policy_id, "resume", {"revision": revision, **UNJUDGED})

    async def roll_back(self, policy_id: str, revision: int, version: int) -> httpx2.Response:
        body = {"revision": revision, "version": version, **UNJUDGED}
        return await self._manage(policy_id, "rollback", body)

    async def _manage(self, policy_id: str, verb: str, body: Json) -> httpx2.Response:
        return await self.client.post(f"{MANAGE}/policies/{policy_id}/{verb}", json=body)

    async def page(self, **query: str | int) -> httpx2.Response:
        return await self.client.get(f"{MANAGE}/policies", params=query)

    async def versions(self, policy_id: str, **query: str | int) -> httpx2.Response:
        return await self.client.get(f"{MANAGE}/policies/{policy_id}/versions", params=query)

    async def version(self, policy_id: str, number: int) -> httpx2.Response:
        return await self.client.get(f"{MANAGE}/policies/{policy_id}/versions/{number}")

    async def effective(self, project_id: object) -> httpx2.Response:
        return await self.client.get(f"{GIVEN}/projects/{project_id}/effective_policies")

    async def created(self, **fields: object) -> Json:
        return body_of(await self.create(**fields))

    async def published(self, **fields: object) -> Json:
        policy = await self.created(**fields)
        return body_of(await self.publish(policy["id"], policy["revision"]))

    async def effective_ids(self, project_id: object) -> list[str]:
        return [policy["id"] for policy in body_of(await self.effective(project_id))["data"]]


def body_of(answer: httpx2.Response) -> Json:
    """Without what `/manage/v1` alone shows, so that the same policy is the same everywhere."""
    return given_part(whole_body_of(answer))


def whole_body_of(answer: httpx2.Response) -> Json:
    assert answer.status_code == 200, answer.text
    return answer.json()


def given_part(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """What `/v1` shows too."""
    match value:
        case dict():
            return {
                name: given_part(member)
                for name, member in value.items()  # pyright: ignore[reportUnknownVariableType]
                if name not in MANAGED_FIELDS
            }
        case list():
            return [given_part(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def assert_conflict(answer: httpx2.Response, code: str, param: str) -> None:
    """A 409 that no SDK sends again."""
    assert answer.status_code == 409, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == (code, param)
    assert error["type"] == "invalid_request_error"
    assert answer.headers["x-should-retry"] == "false"
