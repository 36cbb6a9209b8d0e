"""Sign-ins that must not succeed: forged tokens, replays, strangers' states, hostile providers."""

import base64
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from joserfc import jwk, jwt
from joserfc.jws import JWSRegistry

from tests.identity.browsers import PROJECTS, SESSION, BrowserSession, cookie_of, use
from tests.identity.creations import START
from tests.identity.people import SIGN_IN_COOKIE, SignInScene, sign_in_scene
from tests.support.openid_provider import CLIENT_ID, Claims, ScriptedProvider, new_key
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.base.clock import HeldClock
from tollhouse.console import provider as console_provider
from tollhouse.console.sign_in import STARTED_LIFETIME
from tollhouse.settings import GroupGrantSettings, InvalidSettings, OidcSettings, Settings
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = int(START.timestamp())
STRANGER = new_key("stranger")
SMALL = jwk.ECKey.generate_key("P-256", {"kid": "small"})
LONG = "x" * 150_000

Scenes = AsyncIterator[SignInScene]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(settings: Settings, database: Database) -> Scenes:
    async with _opened(settings, await new_organization_fixture(database)) as running:
        yield running


@pytest.fixture
def scene(shared: SignInScene) -> SignInScene:
    """With an honest provider, whose configuration and key the gateway may have read before."""
    shared.provider.be_honest()
    shared.clock.advance(START - shared.clock.now())
    return shared


@pytest_asyncio.fixture(loop_scope="module")
async def own_scene(settings: Settings, org: OrganizationFixture) -> Scenes:
    """For lies of a provider's configuration, which is read once."""
    async with _opened(settings, org) as running:
        yield running


def _opened(
    settings: Settings, org: OrganizationFixture
) -> AbstractAsyncContextManager[SignInScene]:
    grant = GroupGrantSettings(
        group="admins", organization=str(org.organization_id), permissions="all"
    )
    return sign_in_scene(settings, HeldClock(START), grant)


def _encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def _unsigned(_: ScriptedProvider, claims: Claims) -> str:
    return f"{_encoded({'alg': 'none', 'kid': 'first'})}.{_encoded(claims)}."


def _without_signature(provider: ScriptedProvider, claims: Claims) -> str:
    return provider.sign(claims).rpartition(".")[0] + "."


def _other_claims(provider: ScriptedProvider, claims: Claims) -> str:
    header, _, signature = provider.sign({**claims, "sub": "another"}).split(".")
    return f"{header}.{_encoded(claims)}.{signature}"


def _by_public_key(*, as_pem: bool) -> Callable[[ScriptedProvider, Claims], str]:
    """By hand, since the library refuses to do this."""

    def make(provider: ScriptedProvider, claims: Claims) -> str:
        public = provider.key.as_dict(private=False)
        secret = provider.key.as_pem(private=False) if as_pem else json.dumps(public).encode()
        signed = f"{_encoded({'alg': 'HS256', 'kid': 'first'})}.{_encoded(claims)}"
        tag = hmac.digest(secret, signed.encode(), "sha256")
        return f"{signed}.{base64.urlsafe_b64encode(tag).decode().rstrip('=')}"

    return make


def _by(key: jwk.RSAKey | jwk.ECKey, **header: object) -> Callable[[ScriptedProvider, Claims], str]:
    def make(_: ScriptedProvider, claims: Claims) -> str:
        algorithm = "ES256" if isinstance(key, jwk.ECKey) else "RS256"
        return jwt.encode({"alg": algorithm, **header}, claims, key)

    return make


def _encrypted(provider: ScriptedProvider, claims: Claims) -> str:
    return ".".join(["e30"] * 2 + provider.sign(claims).split("."))


@dataclass(frozen=True)
class Forgery:
    """What the provider does other than an honest one, and what the log must say of it."""

    name: str
    failure: str = "refused"
    fields: dict[str, Any] = field(default_factory=dict[str, Any])


def _claims(name: str, **claims: object) -> Forgery:
    return Forgery(name, fields={"claims": claims})


def _token(
    name: str, token: Callable[[ScriptedProvider, Claims], str], *, failure: str = "refused"
) -> Forgery:
    return Forgery(name, failure, fields={"token": token})


FORGERIES = (
    _token("alg none", _unsigned),
    _token("no signature", _without_signature),
    _token("claims changed after signing", _other_claims),
    _token("HS256 with the public key as PEM", _by_public_key(as_pem=True)),
    _token("HS256 with the public key as JWK", _by_public_key(as_pem=False)),
    _token("a stranger's key under the provider's kid", _by(STRANGER, kid="first")),
    _token("an unknown kid", _by(STRANGER, kid="stranger")),
    _token("another algorithm than the key's", _by(SMALL, kid="first")),
    _token("a key in the header", _by(SMALL, kid="first", jwk=SMALL.as_dict(private=False))),
    _token("the address of a key in the header", _by(STRANGER, kid="k", jku="http://evil.example")),
    _token("an encrypted token", _encrypted),
    _token("not a token", lambda _, __: "word"),
    _token("an oversized token", lambda provider, claims: provider.sign({**claims, "x": LONG})),
    _token(
        "an oversized answer",
        lambda provider, claims: provider.sign({**claims, "x": 2 * LONG}),
        failure="unavailable",
    ),
    _token(
        "a critical header that is not understood",
        lambda provider, claims: jwt.encode(
            {"alg": "RS256", "kid": "first", "crit": ["x"], "x": 1},
            claims,
            provider.key,
            registry=_Lenient(),
        ),
    ),
    _claims("wrong issuer", iss="https://evil.example"),
    _claims("no issuer", iss=None),
    _claims("an issuer that begins alike", iss=["http://127.0.0.1"]),
    _claims("wrong audience", aud="another-client"),
    _claims("no audience", aud=None),
    _claims("two audiences and no authorized party", aud=[CLIENT_ID, "another-client"]),
    _claims("another authorized party", azp="another-client"),
    _claims("expired", exp=NOW - 61),
    _claims("no expiry", exp=None),
    _claims("an expiry that is no number", exp=str(NOW + 300)),
    _claims("not yet valid", nbf=NOW + 61),
    _claims("issued in the future", iat=NOW + 61),
    _claims("no time of issue", iat=None),
    _claims("no nonce", nonce=None),
    _claims("wrong nonce", nonce="another"),
    _claims("a nonce among others", nonce=["another"]),
    _claims("no subject", sub=None),
    _claims("an empty subject", sub=""),
    _claims("a subject that is no text", sub=7),
    _claims("a subject without end", sub="x" * 256),
    Forgery(
        "user info of another person",
        fields={"groups": None, "user_info": {"sub": "person-2", "groups": ["admins"]}},
    ),
    Forgery(
        "user info without a subject",
        fields={"groups": None, "user_info": {"groups": ["admins"]}},
    ),
    Forgery(
        "groups of user info that is refused",
        failure="not_permitted",
        fields={"groups": None, "user_info": None},
    ),
)


class _Lenient(JWSRegistry):
    """Signs what the standard registry refuses."""

    def check_header(self, header: dict[str, Any]) -> None:
        """Accept every header."""


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
async def test_a_forged_token_signs_nobody_in(
    scene: SignInScene, database: Database, forgery: Forgery, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in forgery.fields.items():
        setattr(scene.provider, name, value)
    before = await _sessions(database)

    answer = await scene.sign_in()

    assert answer.headers["location"] == f"/console?sign_in={forgery.failure}"
    assert not cookie_of(answer)
    assert await _sessions(database) == before
    reason = next(r.reason for r in caplog.records if r.message == "sign_in_refused")  # type: ignore[attr-defined]
    assert "CodeRefused" not in reason, "the token was looked at"


async def _sessions(database: Database) -> int:
    return len(await database.fetch_all("SELECT 1 FROM console_sessions"))


async def test_an_honest_token_is_accepted(scene: SignInScene) -> None:
    """Else all others were refused for another reason."""
    scene.provider.claims = {"aud": [CLIENT_ID, "another-client"], "azp": CLIENT_ID}
    assert (await (await scene.browser()).state()) is not None


async def test_the_key_of_another_provider_does_not_fit(own_scene: SignInScene) -> None:
    """Also where it has the same kid, and where the provider publishes secret parts or secrets."""
    secret: dict[str, str | list[str]] = {
        "kty": "oct",
        "kid": "shared",
        "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNl",
    }
    own_scene.provider.published = [secret, {"kty": "RSA", "kid": "broken"}, STRANGER.as_dict()]
    shared = jwk.OctKey.import_key(secret)
    own_scene.provider.token = lambda _, claims: jwt.encode(
        {"alg": "HS256", "kid": "shared"}, claims, shared, algorithms=["HS256"]
    )
    assert not cookie_of(await own_scene.sign_in())
    own_scene.provider.token = _by(STRANGER, kid="broken")
    assert not cookie_of(await own_scene.sign_in())
    own_scene.provider.token = _by(STRANGER)
    assert not cookie_of(await own_scene.sign_in()), "without a kid, two keys fit"


async def test_a_code_and_a_state_work_once(scene: SignInScene) -> None:
    started = await scene.start()
    query = scene.provider.authorize(started.url)
    assert cookie_of(await scene.come_back(query, started.cookie))

    replayed = await scene.come_back(query, started.cookie)
    assert replayed.headers["location"] == "/console?sign_in=refused"
    scene.provider.is_code_reusable = True
    replayed = await scene.come_back(query, started.cookie)
    assert replayed.headers["location"] == "/console?sign_in=expired", "also if the code works"
    assert not cookie_of(replayed)
    again = scene.provider.authorize(started.url)
    replayed = await scene.come_back(again, started.cookie)
    assert replayed.headers["location"] == "/console?sign_in=expired", "and with a new code"


async def test_a_state_works_once_also_after_signing_out(scene: SignInScene) -> None:
    started = await scene.start()
    answer = await scene.come_back(scene.provider.authorize(started.url), started.cookie)
    await BrowserSession(scene.gateway, cookie_of(answer)).sign_out()

    again = scene.provider.authorize(started.url)
    assert not cookie_of(await scene.come_back(again, started.cookie))


async def test_a_state_belongs_to_one_browser(scene: SignInScene) -> None:
    mine, theirs = await scene.start(), await scene.start()
    query = scene.provider.authorize(theirs.url)
    cookies = (mine.cookie, None, "", "word", mine.cookie[:-2], theirs.cookie + "A",
               f"{mine.cookie}; {SIGN_IN_COOKIE}={theirs.cookie}")  # fmt: skip
    for cookie in cookies:
        answer = await scene.come_back(query, cookie)
        assert answer.headers["location"] == "/console?sign_in=expired"
    assert "/token" not in scene.provider.paths, "nothing was asked of the provider"
    assert cookie_of(await scene.come_back(query, theirs.cookie))


async def test_a_changed_answer_is_refused(scene: SignInScene) -> None:
    for changed, failure in (
        ({"state": "another"}, "expired"),
        ({"state": ""}, "expired"),
        ({"code": ""}, "denied"),
        ({"code": "unknown"}, "refused"),
        ({"error": "access_denied"}, "denied"),
        ({"iss": "https://evil.example"}, "refused"),
    ):
        started = await scene.start()
        query = scene.provider.authorize(started.url, **changed)
        answer = await scene.come_back(query, started.cookie)
        assert answer.headers["location"] == f"/console?sign_in={failure}"
        assert not cookie_of(answer)
    started = await scene.start()
    query = scene.provider.authorize(started.url)
    doubled = await scene.come_back(f"{query}&state=another", started.cookie)
    assert doubled.headers["location"] == "/console?sign_in=expired"


@pytest.mark.parametrize(
    "query", ["a=" * 2000, "&".join(["state=a"] * 5000), "%", "state=%00", "\xff"]
)
async def test_a_strange_query_is_refused_as_any_other(scene: SignInScene, query: str) -> None:
    started = await scene.start()
    answer = await scene.come_back(query, started.cookie)
    assert answer.headers["location"] == "/console?sign_in=expired"
    async with scene.gateway.client() as client:
        assert (await client.get(f"{SESSION}?organization=1&{query}")).status_code == 200
        assert (await client.get(f"{SESSION}/start?{query}")).status_code == 303


async def test_a_provider_that_names_itself_must_do_so(own_scene: SignInScene) -> None:
    own_scene.provider.metadata = {"authorization_response_iss_parameter_supported": True}
    started = await own_scene.start()
    query = own_scene.provider.authorize(started.url, iss="")
    assert not cookie_of(await own_scene.come_back(query, started.cookie))


async def test_the_verifier_belongs_to_the_code(scene: SignInScene) -> None:
    """A code that was stolen on its way is worth nothing in another browser's sign-in."""
    mine, theirs = await scene.start(), await scene.start()
    stolen = dict(pair.split("=") for pair in scene.provider.authorize(theirs.url).split("&"))
    query = scene.provider.authorize(mine.url, code=stolen["code"])
    answer = await scene.come_back(query, mine.cookie)
    assert answer.headers["location"] == "/console?sign_in=refused"

    scene.provider.asked[stolen["code"]]["code_challenge"] = ""
    scene.provider.used.clear()
    answer = await scene.come_back(query, mine.cookie)
    assert answer.headers["location"] == "/console?sign_in=refused"


async def test_a_started_sign_in_expires(scene: SignInScene) -> None:
    started = await scene.start()
    query = scene.provider.authorize(started.url)
    scene.clock.advance(STARTED_LIFETIME)
    assert not cookie_of(await scene.come_back(query, started.cookie))


@pytest.mark.parametrize(
    "return_to",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/console/\\evil.example",
        "/consoleevil.example",
        "/console@evil.example",
        "/v1/models",
        "javascript:alert(1)",
        "/console\r\nset-cookie: a=b",
        "/console?" + "a" * 2000,
        "",
    ],
)
async def test_nobody_is_led_to_a_foreign_page(scene: SignInScene, return_to: str) -> None:
    assert (await scene.sign_in(return_to)).headers["location"] == "/console"


async def test_started_sign_ins_and_sessions_are_not_each_other(scene: SignInScene) -> None:
    started = await scene.start()
    browser = await scene.browser()
    token = await browser.token()
    assert await BrowserSession(scene.gateway, started.cookie).state() is None
    assert (await use(scene.gateway, f"ths_{started.cookie}")).status_code == 401
    query = scene.provider.authorize(started.url)
    for cookie in (browser.cookie, token.removeprefix("ths_")):
        assert not cookie_of(await scene.come_back(query, cookie))


async def test_a_stolen_cookie_of_a_person_opens_nothing_else(scene: SignInScene) -> None:
    browser = await scene.browser()
    async with scene.gateway.client() as client:
        for path in (PROJECTS, "/v1/models", "/v1/organization/costs"):
            assert (await client.get(path, headers=browser.cookies)).status_code == 401
        for path in ("/console/other", f"{SESSION}/start", f"{SESSION}/callback", f"{SESSION}/x"):
            answer = await client.get(path, headers=browser.cookies)
            assert "ths_" not in answer.text
    token = await browser.token()
    await browser.sign_out()
    assert (await use(scene.gateway, token)).json()["error"]["code"] == "session_ended"


@pytest.mark.parametrize(
    "hostile",
    [
        {"padding": console_provider.ANSWER_BYTES_MAX},
        {"metadata": {"issuer": "https://evil.example"}},
        {"metadata": {"issuer": None}},
        {"metadata": {"authorization_endpoint": "javascript:alert(1)"}},
        {"metadata": {"end_session_endpoint": "javascript:alert(1)"}},
        {"metadata": {"token_endpoint": 5}},
    ],
    ids=["oversized", "issuer", "no-issuer", "script", "script-at-the-end", "no-address"],
)
async def test_a_hostile_configuration_leads_nowhere(
    own_scene: SignInScene, hostile: dict[str, Any]
) -> None:
    for name, value in hostile.items():
        setattr(own_scene.provider, name, value)
    async with own_scene.gateway.client() as client:
        answers = [await client.get(f"{SESSION}/start") for _ in range(5)]

    for answer in answers:
        assert answer.headers["location"] == "/console?sign_in=unavailable"
    assert len(own_scene.provider.paths) == 1, "a failure is not repeated at once"
    for name in hostile:
        setattr(own_scene.provider, name, {} if name == "metadata" else 0)
    own_scene.clock.advance(timedelta(seconds=console_provider.READ_AGAIN_SECONDS))
    assert (await own_scene.browser()).cookie


async def test_the_configuration_does_not_lead_into_a_private_network(
    own_scene: SignInScene,
) -> None:
    """`localhost` is another host than the issuer's, which is 127.0.0.1."""
    port = own_scene.provider.issuer.rpartition(":")[2]
    own_scene.provider.metadata = {"token_endpoint": f"http://localhost:{port}/token"}
    answer = await own_scene.sign_in()
    assert answer.headers["location"] == "/console?sign_in=unavailable"
    assert "/token" not in own_scene.provider.paths


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://login.example"},
        {"issuer": "login.example"},
        {"issuer": "https://login.example?tenant=1"},
        {"client_id": None},
        {"grants": []},
        {"scopes": ["email"]},
        {"grants": [{"group": "a", "organization": "acme", "permissions": "all"}]},
        {"grants": [{"group": "a", "organization": "ID", "permissions": ["inference:write"]}]},
        {"grants": [{"group": "a", "organization": "ID", "permissions": ["everything"]}]},
    ],
)
async def test_settings_that_would_be_unsafe_are_refused(
    org: OrganizationFixture, wrong: dict[str, Any]
) -> None:
    organization = str(org.organization_id)
    sound = {
        "issuer": "https://login.example",
        "client_id": "tollhouse",
        "grants": [{"group": "a", "organization": "ID", "permissions": "all"}],
    }
    text = json.dumps({**sound, **wrong}).replace('"ID"', f'"{organization}"')
    with pytest.raises((InvalidSettings, msgspec.ValidationError)):
        msgspec.json.decode(text, type=OidcSettings)
    msgspec.json.decode(json.dumps(sound).replace('"ID"', f'"{organization}"'), type=OidcSettings)
