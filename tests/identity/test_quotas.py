"""What an organization may keep: refused at the quota, in its own transaction, and never twice."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.identity.creations import REPLAYED, create, keys_path, managed_keys_path
from tests.support.gateway import running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import new_policy
from tollhouse.base.ids import policy_id_text
from tollhouse.projects.types import Project
from tollhouse.settings import QuotaSettings, Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUOTA = 4
MANAGE = "/manage/v1/organization"
POLICY = {"name": "No names", "rule": "Does the text name a person?"}


@dataclass(frozen=True)
class Kind:
    """Something that is created: its path, and how many each organization has before."""

    quota: str
    path: Callable[[Project], str]
    body: Mapping[str, object]
    at_start: int


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(settings: Settings) -> AsyncIterator[Callable[[str], httpx2.AsyncClient]]:
    quotas = QuotaSettings(
        projects=QUOTA, project_keys=QUOTA, admin_keys=QUOTA, policies=QUOTA, policies_in_effect=2
    )
    async with running_gateway(msgspec.structs.replace(settings, quotas=quotas)) as gateway:
        yield gateway.client


KINDS = [
    Kind("projects", lambda _: f"{MANAGE}/projects", {"name": "a"}, 1),
    Kind("project_keys", lambda project: keys_path(project.id), {"name": "a"}, 0),
    Kind("project_keys", lambda project: managed_keys_path(project.id), {"name": "a"}, 0),
    Kind("admin_keys", lambda _: f"{MANAGE}/admin_api_keys", {"name": "a"}, 1),
    Kind("policies", lambda _: "/v1/organization/policies", POLICY, 0),
]
EVERY_KIND = pytest.mark.parametrize(
    "kind", KINDS, ids=["projects", "keys", "managed keys", "admin keys", "policies"]
)


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, "" if answer.is_success else answer.json()["error"]["code"]


REFUSED = (409, "quota_exceeded")


async def count(org: OrganizationFixture, kind: Kind) -> int:
    async with org.database.transaction() as tx:
        row = await tx.fetch_one(
            """
            SELECT (SELECT count(*) FROM projects WHERE organization_id = $1) AS projects,
                   (SELECT count(*) FROM project_keys WHERE organization_id = $1) AS project_keys,
                   (SELECT count(*) FROM admin_keys WHERE organization_id = $1) AS admin_keys,
                   (SELECT count(*) FROM policies WHERE organization_id = $1) AS policies
            """,
            org.organization_id,
        )
    assert row is not None
    return row[kind.quota]


@EVERY_KIND
async def test_of_many_creations_at_once_as_many_succeed_as_the_quota_has_room_for(
    client: Callable[[str], httpx2.AsyncClient],
    org: OrganizationFixture,
    other_org: OrganizationFixture,
    kind: Kind,
) -> None:
    project, key = await org.project(), await org.admin_key()
    async with client(key.value) as opened:
        answers = await asyncio.gather(
            *(
                create(opened, kind.path(project), f"creation-{number}", kind.body)
                for number in range(3 * QUOTA)
            )
        )
        refused = next(answer for answer in answers if not answer.is_success)
        made = next(number for number, answer in enumerate(answers) if answer.is_success)
        replay = await create(opened, kind.path(project), f"creation-{made}", kind.body)
    other_project, other = await other_org.project(), await other_org.admin_key()
    async with client(other.value) as neighbour:
        others = await create(neighbour, kind.path(other_project), "creation-1", kind.body)

    outcomes = [code(answer) for answer in answers]
    assert outcomes.count((200, "")) == QUOTA - kind.at_start
    assert outcomes.count(REFUSED) == 2 * QUOTA + kind.at_start
    assert await count(org, kind) == QUOTA
    assert f"quotas.{kind.quota}" in refused.json()["error"]["message"]
    assert str(QUOTA) in refused.json()["error"]["message"]
    assert refused.headers["x-should-retry"] == "false"
    assert replay.headers[REPLAYED] == "true"
    assert others.status_code == 200


async def test_what_is_archived_revoked_or_expired_makes_room(
    client: Callable[[str], httpx2.AsyncClient], org: OrganizationFixture
) -> None:
    project, admin = await org.project(), await org.admin_key()
    over = datetime.now(UTC) - timedelta(seconds=1)
    expired = [await org.project_key(project, expires_at=over) for _ in range(QUOTA)]
    keys = [await org.project_key(project) for _ in range(QUOTA)]
    admins = [await org.admin_key() for _ in range(QUOTA - 1)]
    projects = [await org.project() for _ in range(QUOTA - 1)]

    async with client(admin.value) as opened:

        async def outcomes(number: int) -> list[tuple[int, str]]:
            paths = [keys_path(project.id), f"{MANAGE}/admin_api_keys", f"{MANAGE}/projects"]
            return [code(await create(opened, path, f"try-{number}-{path}")) for path in paths]

        before = await outcomes(1)
        await org.revoke_project_key(keys[0])
        await org.revoke_admin_key(admins[0])
        await org.archive(projects[0])
        after = await outcomes(2)

    assert len(expired) == QUOTA
    assert before == [REFUSED] * 3
    assert after == [(200, "")] * 3


async def test_policies_in_effect_are_bounded_for_each_project(
    client: Callable[[str], httpx2.AsyncClient], org: OrganizationFixture
) -> None:
    admin = await org.admin_key()
    drafts = [await new_policy(org) for _ in range(3)]

    async with client(admin.value) as opened:
        published = [
            await opened.post(
                f"{MANAGE}/policies/{policy_id_text(draft.id)}/publish",
                json={"revision": draft.revision},
            )
            for draft in drafts
        ]

    assert [code(answer) for answer in published] == [(200, ""), (200, ""), REFUSED]
