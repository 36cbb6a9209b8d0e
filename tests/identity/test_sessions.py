"""Sessions of the console by an Admin key: what a cookie opens, and what ends it."""

import asyncio
from datetime import timedelta

import pytest

from tests.identity.browsers import COOKIE, PROJECTS, SESSION, BrowserSession, sign_in, use
from tests.identity.creations import START, create
from tests.support.gateway import Gateway, run_jobs
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.organizations.types import OrganizationStatus
from tollhouse.projects.types import Project
from tollhouse.sessions.rules import LIFETIME, SESSIONS_PER_OWNER_MAX, TOKEN_LIFETIME
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

MOMENT = timedelta(seconds=1)


async def test_a_sign_in_sets_a_cookie_for_one_path(
    held: Gateway, org: OrganizationFixture
) -> None:
    key = await org.admin_key()
    _, answer = await sign_in(held, key.value)

    assert answer.status_code == 200
    (cookie,) = answer.headers.get_list("set-cookie")
    attributes = cookie.split("; ")[1:]
    assert attributes == ["Path=/console/session", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]
    assert answer.headers["cache-control"] == "no-store"
    assert key.value not in answer.text
    shown = answer.json()["session"]
    assert shown["name"] == key.key.redacted_value
    assert not shown["is_person"]
    assert shown["organization_id"] == str(org.organization_id)
    assert shown["organizations"] == [], "not every key may read the name"
    assert (await use(held, shown["token"])).status_code == 200


async def test_a_token_acts_as_its_key(
    held: Gateway, org: OrganizationFixture, database: Database
) -> None:
    key = await org.admin_key(("projects:read", "projects:create"))
    browser, _ = await sign_in(held, key.value)
    async with held.client(await browser.token()) as client:
        created = await create(client, PROJECTS, "creation-1", {"name": "by a browser"})
        refused = await client.get("/manage/v1/organization/audit")

    assert created.status_code == 200
    assert refused.status_code == 403
    rows = await database.fetch_all(
        "SELECT actor_type, actor_id, action FROM audit_log WHERE organization_id = $1 ORDER BY id",
        org.organization_id,
    )
    found = [tuple(row) for row in rows if row["actor_type"] == "admin_api_key"]
    actor = ("admin_api_key", str(key.key.id))
    assert found == [(*actor, "session.create"), (*actor, "project.create")]


async def test_nothing_but_a_digest_of_the_cookie_is_stored(
    held: Gateway, org: OrganizationFixture, database: Database
) -> None:
    key = await org.admin_key()
    browser, _ = await sign_in(held, key.value)
    token = await browser.token()

    text = await database.fetch_all(
        """
        SELECT to_jsonb(s)::text AS line FROM console_sessions s
         UNION ALL SELECT to_jsonb(a)::text FROM audit_log a
        """
    )
    lines = "".join(row["line"] for row in text)
    assert "session.create" in lines
    assert not any(secret in lines for secret in (key.value, browser.cookie, token))


@pytest.mark.parametrize("path", [PROJECTS, "/v1/models", "/v1/organization/admin_api_keys"])
async def test_the_cookie_opens_no_api(held: Gateway, org: OrganizationFixture, path: str) -> None:
    browser, _ = await sign_in(held, (await org.admin_key()).value)
    async with held.client() as client:
        as_cookie = await client.get(path, headers=browser.cookies)
    as_bearer = await use(held, browser.cookie, path)

    assert as_cookie.status_code == 401
    assert as_cookie.json()["error"]["code"] == "missing_api_key"
    assert as_bearer.status_code == 401


@pytest.mark.parametrize("path", ["/console/session/", "/console/session/x", "/console/other"])
async def test_the_cookie_opens_no_other_page(
    held: Gateway, org: OrganizationFixture, path: str
) -> None:
    browser, _ = await sign_in(held, (await org.admin_key()).value)
    async with held.client() as client:
        answer = await client.get(path, headers=browser.cookies)

    assert "ths_" not in answer.text


async def test_a_changed_cookie_or_two_of_them_are_nobody(
    held: Gateway, org: OrganizationFixture
) -> None:
    browser, _ = await sign_in(held, (await org.admin_key()).value)
    other, _ = await sign_in(held, (await org.admin_key()).value)
    last = "B" if browser.cookie[-1] == "A" else "A"
    both = f"{browser.cookie}; {COOKIE}={other.cookie}"
    for forged in (browser.cookie[:-1] + last, browser.cookie[:-1], "", "x" * 4000, both):
        assert await BrowserSession(held, forged).state() is None
    assert await browser.state() is not None


async def test_a_changed_token_is_refused(held: Gateway, org: OrganizationFixture) -> None:
    browser, _ = await sign_in(held, (await org.admin_key()).value)
    token = await browser.token()
    for place in (4, 40, 60, len(token) - 2):
        changed = "B" if token[place] == "A" else "A"
        answer = await use(held, token[:place] + changed + token[place + 1 :])
        assert answer.json()["error"]["code"] == "session_ended"
    for forged in ("ths_", "ths_AAAA", "ths_é", "ths_" + "A" * 96, token[4:], token + "A"):
        async with held.client() as client:
            header = {b"authorization": f"Bearer {forged}".encode()}
            assert (await client.get(PROJECTS, headers=header)).status_code == 401


async def test_a_token_opens_no_route_of_project_keys(
    held: Gateway, org: OrganizationFixture
) -> None:
    browser, _ = await sign_in(held, (await org.admin_key()).value)

    assert (await use(held, await browser.token(), "/v1/models")).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
async def test_other_pages_are_told_nothing(
    held: Gateway, org: OrganizationFixture, site: str
) -> None:
    key = await org.admin_key()
    browser, _ = await sign_in(held, key.value)
    headers = {**browser.cookies, "sec-fetch-site": site}
    async with held.client(key.value) as client:
        answers = [
            await client.request(method, SESSION, headers=headers)
            for method in ("GET", "POST", "DELETE")
        ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert not any("set-cookie" in answer.headers for answer in answers)
    assert await browser.state() is not None


async def test_a_token_lives_for_minutes_and_a_session_for_hours(
    held: Gateway, org: OrganizationFixture, clock: HeldClock, database: Database
) -> None:
    browser, _ = await sign_in(held, (await org.admin_key()).value)
    token = await browser.token()
    clock.advance(TOKEN_LIFETIME - MOMENT)
    assert (await use(held, token)).status_code == 200
    clock.advance(MOMENT)
    assert (await use(held, token)).status_code == 401

    clock.advance(LIFETIME - TOKEN_LIFETIME - MOMENT)
    token = await browser.token()
    clock.advance(MOMENT)
    assert await browser.state() is None
    assert (await use(held, token)).json()["error"]["code"] == "session_ended"

    clock.advance(MOMENT)
    await run_jobs(held.application, "console-sessions")
    rows = await database.fetch_all("SELECT 1 FROM console_sessions WHERE expires_at < $1", START)
    assert rows == []


async def test_signing_out_ends_the_token_at_once(
    held: Gateway, org: OrganizationFixture, database: Database
) -> None:
    browser, _ = await sign_in(held, (await org.admin_key()).value)
    other, _ = await sign_in(held, (await org.admin_key()).value)
    token = await browser.token()

    answer = await browser.sign_out()

    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert await browser.state() is None
    assert (await use(held, token)).json()["error"]["code"] == "session_ended"
    assert await other.state() is not None
    assert (await browser.sign_out()).status_code == 200
    ended = await database.fetch_all(
        "SELECT 1 FROM audit_log WHERE organization_id = $1 AND action = 'session.end'",
        org.organization_id,
    )
    assert len(ended) == 1


async def test_a_session_ends_with_its_key(
    held: Gateway, org: OrganizationFixture, clock: HeldClock, database: Database
) -> None:
    revoked, expiring, replaced = (
        await org.admin_key(),
        await org.admin_key(expires_at=START + timedelta(hours=1)),
        await org.admin_key(),
    )
    browsers = [(await sign_in(held, key.value))[0] for key in (revoked, expiring, replaced)]
    tokens = [await browser.token() for browser in browsers]

    await org.revoke_admin_key(revoked)
    assert (await use(held, tokens[0])).status_code == 401
    assert await browsers[0].state() is None

    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE key_directory SET expires_at = $2 WHERE key_id = $1", replaced.key.id, START
        )
    assert (await use(held, tokens[2])).status_code == 401
    assert await browsers[2].state() is None

    assert (await use(held, tokens[1])).status_code == 200
    clock.advance(timedelta(hours=1))
    assert await browsers[1].state() is None


async def test_a_change_does_not_commit_after_the_end(
    held: Gateway, org: OrganizationFixture, project: Project, database: Database
) -> None:
    """The end waits for a change that has read the session, and every later one is refused."""
    browser, _ = await sign_in(held, (await org.admin_key()).value)
    token = await browser.token()
    path = f"/v1/organization/projects/{project.id}/archive"
    async with held.client(token) as client:
        async with database.transaction() as tx:
            await tx.fetch_one(
                "SELECT 1 FROM organizations WHERE id = $1 FOR UPDATE", org.organization_id
            )
            changing = asyncio.create_task(client.post(path))
            await _wait_for_lock(database, "FOR KEY SHARE OF o")
            ending = asyncio.create_task(browser.sign_out())
            await _wait_for_lock(database, "UPDATE console_sessions")
            assert not changing.done()
            assert not ending.done()
        assert (await changing).status_code == 200
        assert (await ending).status_code == 200
    assert (await use(held, token)).status_code == 401


async def _wait_for_lock(database: Database, statement: str) -> None:
    while True:
        rows = await database.fetch_all(
            """
            SELECT 1 FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'
               AND position($1 in query) > 0
            """,
            statement,
        )
        if rows:
            return
        await asyncio.sleep(0.01)


async def test_sessions_of_a_key_are_bounded(held: Gateway, org: OrganizationFixture) -> None:
    key = (await org.admin_key()).value
    browsers = [(await sign_in(held, key))[0] for _ in range(SESSIONS_PER_OWNER_MAX + 2)]

    states = [await browser.state() is not None for browser in browsers]
    assert states == [False, False, *[True] * SESSIONS_PER_OWNER_MAX]


async def test_a_suspended_organization_keeps_its_session(
    held: Gateway, org: OrganizationFixture
) -> None:
    browser, _ = await sign_in(held, (await org.admin_key()).value)
    await org.set_status(OrganizationStatus.SUSPENDED)
    answer = await use(held, await browser.token())
    assert answer.json()["error"]["code"] == "organization_suspended"
    await org.set_status(OrganizationStatus.CLOSED)
    assert await browser.state() is None


async def test_a_wrong_key_signs_nobody_in(
    held: Gateway, org: OrganizationFixture, project: Project
) -> None:
    project_key = await org.project_key(project)
    for key, code in (
        ("word", "invalid_api_key"),
        (project_key.value, "wrong_key_type"),
        ((await sign_in(held, (await org.admin_key()).value))[0].cookie, "invalid_api_key"),
    ):
        _, answer = await sign_in(held, key)
        assert answer.json()["error"]["code"] == code
        assert "set-cookie" not in answer.headers
