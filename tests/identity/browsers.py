"""A browser's session at the gateway, by plain HTTP."""

from dataclasses import dataclass

import httpx2

from tests.support.gateway import Gateway

SESSION = "/console/session"
COOKIE = "tollhouse_session"
HINT_COOKIE = "tollhouse_sign_out_hint"
PROJECTS = "/manage/v1/organization/projects"


@dataclass
class BrowserSession:
    """Keeps a cookie, as a browser does, and asks for tokens with it."""

    gateway: Gateway
    cookie: str

    async def state(self, **query: str) -> dict[str, object] | None:
        async with self.gateway.client() as client:
            answer = await client.get(SESSION, headers=self.cookies, params=query)
        assert answer.status_code == 200, answer.text
        assert "set-cookie" not in answer.headers
        return answer.json()["session"]

    @property
    def cookies(self) -> dict[str, str]:
        return {"cookie": f"{COOKIE}={self.cookie}"}

    async def token(self, **query: str) -> str:
        state = await self.state(**query)
        assert state is not None, "signed in"
        return str(state["token"])

    async def sign_out(self, *, hint: str | None = None) -> httpx2.Response:
        headers = self.cookies
        if hint is not None:
            headers["cookie"] += f"; {HINT_COOKIE}={hint}"
        async with self.gateway.client() as client:
            return await client.delete(SESSION, headers=headers)


async def sign_in(gateway: Gateway, key: str) -> tuple[BrowserSession, httpx2.Response]:
    """Sign in with an Admin key."""
    async with gateway.client(key) as client:
        answer = await client.post(SESSION)
    return BrowserSession(gateway, cookie_of(answer)), answer


def cookie_of(answer: httpx2.Response, wanted: str = COOKIE) -> str:
    """Return the value of the session cookie that an answer sets; empty without one."""
    for header in answer.headers.get_list("set-cookie"):
        name, _, value = header.partition(";")[0].partition("=")
        if name.removeprefix("__Secure-") == wanted:
            return value
    return ""


async def use(gateway: Gateway, token: str, path: str = PROJECTS) -> httpx2.Response:
    """Call the API with a bearer credential."""
    async with gateway.client(token) as client:
        return await client.get(path)
