"""The operator sees who is signed in to the console, and ends it."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from tests.cli.commands import Operator
from tollhouse.base.ids import OrganizationId, RequestId, SessionId, time_ordered_uuid
from tollhouse.cli import session
from tollhouse.cli.session import Session
from tollhouse.sessions import service
from tollhouse.sessions.types import ConsoleSession


def _sign_in(operator: Operator, organization_id: str) -> str:
    now = datetime.now(UTC)
    opened = ConsoleSession(
        id=SessionId(time_ordered_uuid()),
        owner_id=time_ordered_uuid(),
        key_digest=None,
        person_name="alice@example.com",
        groups=("admins",),
        organization_ids=(OrganizationId(UUID(organization_id)),),
        created_at=now,
        expires_at=now + timedelta(hours=12),
    )

    async def begin(running: Session) -> None:
        request_id = RequestId(time_ordered_uuid())
        await service.begin(running.database, opened, request_id=request_id)

    session.run(operator.settings_path, begin)
    return str(opened.id)


def test_a_session_is_listed_and_ended(operator: Operator) -> None:
    organization_id = operator.json("org", "create", "Example Ltd")["id"]
    session_id = _sign_in(operator, organization_id)

    (listed,) = operator.json("session", "list")["data"]
    assert listed["id"] == session_id
    assert listed["person_name"] == "alice@example.com"
    assert listed["organizations"] == [organization_id]
    assert operator.json("session", "end", session_id)["id"] == session_id

    assert operator.json("session", "list")["data"] == []
    latest = operator.json("audit", "--org", organization_id)["data"][0]
    assert (latest["actor"]["type"], latest["action"]) == ("operator", "session.end")
    again = operator.run("session", "end", session_id, "--json", exit_code=1)
    assert again.error["code"] == "session_ended"
