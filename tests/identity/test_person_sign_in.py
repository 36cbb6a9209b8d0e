"""People sign in at a provider: what they may do, where, under which name, and until when."""

from collections.abc import AsyncIterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import pytest_asyncio
from joserfc import jwt

from tests.identity.browsers import (
    HINT_COOKIE,
    PROJECTS,
    BrowserSession,
    cookie_of,
    sign_in,
    use,
)
from tests.identity.creations import START, create
from tests.identity.people import PUBLIC_URL, SignInScene, sign_in_scene
from tests.support.gateway import Gateway, running_gateway
from tests.support.openid_provider import new_key
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.console import provider as console_provider
from tollhouse.console.id_tokens import CLOCK_SKEW_SECONDS
from tollhouse.organizations.types import OrganizationStatus
from tollhouse.settings import GroupGrantSettings, OidcSettings, Settings
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

AUDIT = "/manage/v1/organization/audit"


@pytest_asyncio.fixture(loop_scope="module")
async def scene(
    settings: Settings, org: OrganizationFixture, other_org: OrganizationFixture
) -> AsyncIterator[SignInScene]:
    """Admins may do all in one organization; readers may read projects in both."""
    grants = (
        _grant("admins", org, "all"),
        _grant("readers", org, ["projects:read"]),
        _grant("readers", other_org, ["projects:read"]),
        _grant("auditors", other_org, ["audit:read"]),
    )
    async with sign_in_scene(settings, HeldClock(START), *grants) as running:
        yield running


def _grant(group: str, org: OrganizationFixture, permissions: object) -> GroupGrantSettings:
    return msgspec.convert(
        {"group": group, "organization": str(org.organization_id), "permissions": permissions},
        GroupGrantSettings,
    )


async def test_the_provider_is_asked_for_a_code_with_pkce(scene: SignInScene) -> None:
    started = await scene.start()
    query = parse_qs(urlsplit(started.url).query)

    assert started.url.startswith(f"{scene.provider.issuer}/authorize?")
    assert query["response_type"] == ["code"]
    assert query["redirect_uri"] == [f"{PUBLIC_URL}/console/session/callback"]
    assert query["scope"] == ["openid email profile"]
    assert query["code_challenge_method"] == ["S256"]
    secrets = {query[name][0] for name in ("state", "nonce", "code_challenge")}
    assert len(secrets) == 3
    again = await scene.start()
    assert secrets.isdisjoint(value for (value,) in parse_qs(urlsplit(again.url).query).values())


async def test_a_person_acts_under_their_own_name(
    scene: SignInScene, org: OrganizationFixture, database: Database
) -> None:
    answer = await scene.sign_in("/console/projects?page=2")
    assert answer.headers["location"] == "/console/projects?page=2"
    assert "SameSite=Strict" in answer.headers.get_list("set-cookie")[0]
    browser = BrowserSession(scene.gateway, cookie_of(answer))
    state = await browser.state()
    assert state is not None
    assert state["is_person"]
    assert state["name"] == "person-1@example.com"
    assert state["organizations"] == [{"id": str(org.organization_id), "name": "an organization"}]

    async with scene.gateway.client(await browser.token()) as client:
        created = await create(client, PROJECTS, "creation-1", {"name": "by a person"})
        entries = (await client.get(AUDIT)).json()["data"]
    assert created.status_code == 200
    actors = [(entry["actor"], entry["action"]) for entry in entries[:2]]
    person = {"type": "person", "id": entries[0]["actor"]["id"], "name": "person-1@example.com"}
    assert actors == [(person, "project.create"), (person, "session.create")]
    assert (await browser.sign_out()).status_code == 200
    last = await database.fetch_all(
        """
        SELECT actor_name, action FROM audit_log
         WHERE organization_id = $1 ORDER BY id DESC LIMIT 1
        """,
        org.organization_id,
    )
    assert [tuple(row) for row in last] == [("person-1@example.com", "session.end")]


async def test_groups_are_mapped_in_each_organization(
    scene: SignInScene, org: OrganizationFixture, other_org: OrganizationFixture, database: Database
) -> None:
    scene.provider.groups = ["readers", "auditors", "of no concern"]
    browser = await scene.browser()
    state = await browser.state()
    assert state is not None
    organizations = msgspec.convert(state["organizations"], list[dict[str, str]])
    names = [each["name"] for each in organizations]
    assert names == ["an organization", "another organization"]
    statuses = {}
    for each in (org, other_org):
        token = await browser.token(organization=str(each.organization_id))
        statuses[each] = [
            (await use(scene.gateway, token, path)).status_code for path in (PROJECTS, AUDIT)
        ]
        async with scene.gateway.client(token) as client:
            refused = await create(client, PROJECTS, "creation-1", {"name": "not permitted"})
        assert refused.status_code == 403
    assert statuses == {org: [200, 403], other_org: [200, 200]}
    for each in (org, other_org):
        signed_in = await database.fetch_all(
            "SELECT 1 FROM audit_log WHERE organization_id = $1 AND action = 'session.create'",
            each.organization_id,
        )
        assert len(signed_in) == 1
    stored = await database.fetch_all(
        "SELECT groups FROM console_sessions WHERE $1 = ANY(organization_ids)", org.organization_id
    )
    assert [sorted(row["groups"]) for row in stored] == [["auditors", "readers"]]


async def test_a_token_acts_in_its_own_organization_alone(
    scene: SignInScene, org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    scene.provider.groups = ["admins"]
    browser = await scene.browser()
    state = await browser.state(organization=str(other_org.organization_id))

    assert state is not None
    assert state["organization_id"] == str(org.organization_id), "no grant, no token"


async def test_groups_of_user_info_and_nested_claims(scene: SignInScene) -> None:
    scene.provider.groups = None
    scene.provider.user_info = {"sub": "person-1", "groups": "admins"}
    assert (await (await scene.browser()).state()) is not None


async def test_somebody_without_a_grant_stays_outside(scene: SignInScene) -> None:
    for groups in (["strangers"], [], None, 5, {"admins": True}, [["admins"]]):
        scene.provider.groups = groups
        answer = await scene.sign_in()
        assert answer.headers["location"] == "/console?sign_in=not_permitted"
        assert not cookie_of(answer)


async def test_new_keys_of_the_provider_are_read_at_a_bounded_rate(scene: SignInScene) -> None:
    await scene.browser()
    scene.provider.key = new_key("second")
    scene.clock.advance(timedelta(seconds=console_provider.READ_AGAIN_SECONDS))
    await scene.browser()
    reads = scene.provider.paths.count("/jwks")
    assert reads == 2

    scene.provider.key = new_key("third")
    for _ in range(5):
        assert "refused" in (await scene.sign_in()).headers["location"]
    assert scene.provider.paths.count("/jwks") == reads
    scene.clock.advance(timedelta(seconds=console_provider.READ_AGAIN_SECONDS))
    await scene.browser()


@pytest.mark.parametrize(
    ("claims", "is_accepted"),
    [
        ({"exp": -CLOCK_SKEW_SECONDS + 1}, True),
        ({"exp": -CLOCK_SKEW_SECONDS}, False),
        ({"iat": CLOCK_SKEW_SECONDS}, True),
        ({"iat": CLOCK_SKEW_SECONDS + 1}, False),
        ({"nbf": CLOCK_SKEW_SECONDS}, True),
        ({"nbf": CLOCK_SKEW_SECONDS + 1}, False),
    ],
)
async def test_clocks_may_differ_by_a_minute(
    scene: SignInScene, claims: dict[str, int], *, is_accepted: bool
) -> None:
    now = int(scene.clock.now().timestamp())
    scene.provider.claims = {name: now + seconds for name, seconds in claims.items()}

    assert bool(cookie_of(await scene.sign_in())) is is_accepted


async def test_another_worker_can_answer_the_way_back(scene: SignInScene) -> None:
    started = await scene.start()
    query = scene.provider.authorize(started.url)
    async with running_gateway(scene.settings, scene.clock) as second:
        other = SignInScene(scene.settings, second, scene.provider, scene.clock)
        answer = await other.come_back(query, started.cookie)
    browser = BrowserSession(scene.gateway, cookie_of(answer))
    assert (await use(scene.gateway, await browser.token())).status_code == 200


async def test_a_closed_organization_and_a_lost_grant_end_what_they_gave(
    scene: SignInScene, settings: Settings, other_org: OrganizationFixture
) -> None:
    scene.provider.groups = ["readers"]
    browser = await scene.browser()
    token = await browser.token(organization=str(other_org.organization_id))
    await other_org.set_status(OrganizationStatus.CLOSED)
    assert (await use(scene.gateway, token)).status_code == 401
    state = await browser.state()
    assert state is not None
    assert len(msgspec.convert(state["organizations"], list[dict[str, str]])) == 1

    async with running_gateway(settings, scene.clock) as without_provider:
        stale = BrowserSession(without_provider, browser.cookie)
        assert await stale.state() is None
        assert (await use(without_provider, token)).status_code == 401


async def test_signing_out_leads_to_the_provider_only_for_people(
    scene: SignInScene, org: OrganizationFixture
) -> None:
    browser = await scene.browser()
    url = str((await browser.sign_out()).json()["sign_out_url"])
    assert url.startswith(f"{scene.provider.issuer}/logout?client_id=")
    assert parse_qs(urlsplit(url).query)["post_logout_redirect_uri"] == [f"{PUBLIC_URL}/console"]
    by_key, _ = await sign_in(scene.gateway, (await org.admin_key()).value)
    assert (await by_key.sign_out()).json() == {"sign_out_url": None}


async def test_the_provider_is_told_whose_session_ends(scene: SignInScene) -> None:
    answer = await scene.sign_in()
    hint = cookie_of(answer, HINT_COOKIE)
    (header,) = [each for each in answer.headers.get_list("set-cookie") if hint in each]
    assert "Path=/console/session; Max-Age=43200; HttpOnly; SameSite=Strict" in header

    signed_out = await BrowserSession(scene.gateway, cookie_of(answer)).sign_out(hint=hint)

    url = str(signed_out.json()["sign_out_url"])
    assert parse_qs(urlsplit(url).query)["id_token_hint"] == [hint]
    assert [each.partition(";")[0] for each in signed_out.headers.get_list("set-cookie")] == [
        "tollhouse_session=",
        f"{HINT_COOKIE}=",
    ]
    assert jwt.decode(hint, scene.provider.key).claims["sub"] == scene.provider.subject


async def test_an_id_token_that_no_cookie_can_hold_is_not_kept(scene: SignInScene) -> None:
    scene.provider.claims = {"groups": ["admins", "x" * 4_000]}

    answer = await scene.sign_in()

    assert cookie_of(answer)
    assert cookie_of(answer, HINT_COOKIE) == ""


async def test_grants_without_a_provider_give_nothing(scene: SignInScene) -> None:
    browser = await scene.browser()
    token = await browser.token()
    oidc = OidcSettings(grants=scene.settings.oidc.grants)

    async with running_gateway(
        msgspec.structs.replace(scene.settings, oidc=oidc), scene.clock
    ) as without_provider:
        assert await BrowserSession(without_provider, browser.cookie).state() is None
        assert (await use(without_provider, token)).status_code == 401


async def test_cookies_are_secure_behind_https(
    settings: Settings, org: OrganizationFixture
) -> None:
    server = msgspec.structs.replace(settings.server, public_url="https://gateway.example/llm")
    secure = msgspec.structs.replace(settings, server=server)
    async with running_gateway(secure) as gateway:
        _, answer = await sign_in(gateway, (await org.admin_key()).value)
    (cookie,) = answer.headers.get_list("set-cookie")
    assert cookie.startswith("__Secure-tollhouse_session=")
    assert cookie.endswith("; Secure")
    # The console is at the root of its host, whatever path the proxy puts before the API.
    assert "; Path=/console/session; " in cookie


async def test_without_a_provider_there_is_no_way_to_one(gateway: Gateway) -> None:
    async with gateway.client() as client:
        assert (await client.get("/console/session")).json()["sign_in_url"] is None
        for path in ("start", "callback"):
            assert (await client.get(f"/console/session/{path}")).status_code == 404
