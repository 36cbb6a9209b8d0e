"""Creating project keys through the given operation."""

from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture


async def test_a_created_key_is_shown_once_and_listed_redacted(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    project = await org.project("search")
    admin = await org.admin_key()

    async with gateway.client(admin.value) as client:
        created = await client.post(
            f"/v1/organization/projects/{project.id}/api_keys",
            json={"name": "production"},
            headers={"Idempotency-Key": "creation-1"},
        )
        listed = await client.get(f"/manage/v1/organization/projects/{project.id}/api_keys")

    assert created.status_code == 200
    body = created.json()
    assert body["value"].startswith("thp_")
    assert body["redacted_value"] == f"{body['value'][:8]}...{body['value'][-4:]}"
    assert body["owner"] == {"id": str(project.id), "type": "project", "name": "search"}
    shown = {name: value for name, value in body.items() if name != "value"}
    assert listed.json()["data"] == [
        shown | {"allowed_models": None, "previous_value_expires_at": None}
    ]
