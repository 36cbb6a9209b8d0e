"""An OpenID provider that a test can make lie: it issues whatever the test says."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwk, jwt

CLIENT_ID = "tollhouse-test"
CLIENT_SECRET = "a secret with: special/characters"
HEAD_BYTES_MAX = 65_536
Claims = dict[str, Any]


def new_key(kid: str) -> jwk.RSAKey:
    return jwk.RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


@dataclass
class ScriptedProvider:
    """Answers by these fields at the time of the request; tests change them."""

    issuer: str = ""
    clock: Callable[[], float] = lambda: 0.0
    key: jwk.RSAKey = field(default_factory=lambda: new_key("first"))
    published: list[Claims] = field(default_factory=list[Claims])
    subject: str = "person-1"
    groups: object = ("admins",)
    claims: Claims = field(default_factory=dict[str, Any])
    """Replace those of an honest token; None leaves one out."""
    header: Claims = field(default_factory=dict[str, Any])
    metadata: Claims = field(default_factory=dict[str, Any])
    user_info: Claims | None = None
    token: Callable[["ScriptedProvider", Claims], str] | None = None
    """Makes the ID token of its claims, in place of an honest signature."""
    paths: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    asked: dict[str, Claims] = field(default_factory=dict[str, Claims])
    padding: int = 0
    is_code_reusable: bool = False

    def be_honest(self) -> None:
        """Forget what tests have said and asked."""
        vars(self).update(vars(ScriptedProvider(self.issuer, self.clock, self.key)))

    def authorize(self, url: str, **changed: str) -> str:
        """Sign the person in, as the browser's visit would; return the query of the way back."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        code = f"code-{len(self.asked)}"
        self.asked[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.issuer, **changed}
        return "&".join(f"{name}={value}" for name, value in answer.items() if value)

    def honest_claims(self, asked: Claims) -> Claims:
        now = int(self.clock())
        honest: Claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": self.subject,
            "nonce": asked.get("nonce"),
            "iat": now,
            "exp": now + 300,
            "email": f"{self.subject}@example.com",
            "groups": self.groups,
            **self.claims,
        }
        return {name: value for name, value in honest.items() if value is not None}

    def sign(self, claims: Claims, key: jwk.RSAKey | None = None) -> str:
        signing = key or self.key
        header = {"alg": "RS256", "kid": signing.kid, **self.header}
        return jwt.encode({k: v for k, v in header.items() if v is not None}, claims, signing)

    # The endpoints

    def answer(self, method: str, path: str, headers: dict[str, str], body: str) -> tuple[int, Any]:
        self.paths.append(path)
        match path:
            case "/.well-known/openid-configuration":
                return 200, {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/jwks",
                    "userinfo_endpoint": f"{self.issuer}/userinfo",
                    "end_session_endpoint": f"{self.issuer}/logout",
                    "padding": "x" * self.padding,
                    **self.metadata,
                }
            case "/jwks":
                own = self.key.as_dict(private=False)
                return 200, {"keys": [own, *self.published]}
            case "/token" if method == "POST":
                return self._exchange(headers, parse_qs(body))
            case "/userinfo":
                return (200, self.user_info) if self.user_info is not None else (403, {})
            case _:
                return 404, {}

    def _exchange(self, headers: dict[str, str], form: dict[str, list[str]]) -> tuple[int, Any]:
        code = form["code"][0]
        asked = self.asked.get(code)
        if asked is None or (code in self.used and not self.is_code_reusable):
            return 400, {"error": "invalid_grant"}
        self.used.add(code)
        pair = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode()
        is_client = pair == f"{CLIENT_ID}:a%20secret%20with%3A%20special%2Fcharacters"
        digest = hashlib.sha256(form.get("code_verifier", [""])[0].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if not is_client or challenge != asked.get("code_challenge"):
            return 400, {"error": "invalid_grant"}
        claims = self.honest_claims(asked)
        token = self.sign(claims) if self.token is None else self.token(self, claims)
        return 200, {"id_token": token, "access_token": "access", "token_type": "Bearer"}


@asynccontextmanager
async def running_provider(clock: Callable[[], float]) -> AsyncGenerator[ScriptedProvider]:
    """Serve a provider on a free port of loopback."""
    provider = ScriptedProvider(clock=clock)
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = lines[0].split(" ")
        pairs = (line.partition(": ") for line in lines[1:] if line)
        headers = {name.lower(): value for name, _, value in pairs}
        body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode()
        status, answer = provider.answer(method, path, headers, body)
        content = json.dumps(answer).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\nconnection: close\r\n\r\n".encode()
            + content
        )
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
    provider.issuer = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield provider
        for writer in writers:
            # An answer that is too long is not read to its end.
            writer.transport.abort()
