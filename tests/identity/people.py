"""People who sign in at a provider, by plain HTTP."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import msgspec

from tests.identity.browsers import SESSION, BrowserSession, cookie_of
from tests.support.gateway import Gateway, running_gateway
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    ScriptedProvider,
    running_provider,
)
from tollhouse.base.clock import HeldClock
from tollhouse.settings import GroupGrantSettings, OidcSettings, Settings

SIGN_IN_COOKIE = "tollhouse_sign_in"
PUBLIC_URL = "http://127.0.0.1:1"


@dataclass(frozen=True)
class Started:
    """A browser on its way to the provider."""

    url: str
    cookie: str


@dataclass(frozen=True)
class SignInScene:
    settings: Settings
    gateway: Gateway
    provider: ScriptedProvider
    clock: HeldClock

    async def start(self, return_to: str | None = None) -> Started:
        query = {} if return_to is None else {"return_to": return_to}
        async with self.gateway.client() as client:
            answer = await client.get(f"{SESSION}/start", params=query)
        assert answer.status_code == 303
        (header,) = answer.headers.get_list("set-cookie")
        name, _, value = header.partition(";")[0].partition("=")
        assert name == SIGN_IN_COOKIE
        return Started(answer.headers["location"], value)

    async def come_back(self, query: str, cookie: str | None) -> httpx2.Response:
        headers = {} if cookie is None else {"cookie": f"{SIGN_IN_COOKIE}={cookie}"}
        async with self.gateway.client() as client:
            return await client.get(f"{SESSION}/callback?{query}", headers=headers)

    async def sign_in(self, return_to: str | None = None) -> httpx2.Response:
        """Sign in without any mishap but those that the provider was given."""
        started = await self.start(return_to)
        return await self.come_back(self.provider.authorize(started.url), started.cookie)

    async def browser(self) -> BrowserSession:
        """Sign in and keep the cookie."""
        answer = await self.sign_in()
        cookie = cookie_of(answer)
        assert cookie, answer.headers["location"]
        return BrowserSession(self.gateway, cookie)


@asynccontextmanager
async def sign_in_scene(
    settings: Settings, clock: HeldClock, *grants: GroupGrantSettings
) -> AsyncGenerator[SignInScene]:
    """A gateway whose people sign in at a provider that a test can make lie."""
    async with running_provider(lambda: clock.now().timestamp()) as provider:
        oidc = OidcSettings(
            issuer=provider.issuer, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, grants=grants
        )
        server = msgspec.structs.replace(settings.server, public_url=PUBLIC_URL)
        configured = msgspec.structs.replace(settings, oidc=oidc, server=server)
        async with running_gateway(configured, clock) as gateway:
            yield SignInScene(configured, gateway, provider, clock)
