"""The OpenID provider: its configuration, its keys, and the exchange of a code for claims."""

import asyncio
import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from tollhouse.alerts.rules import is_public
from tollhouse.backends.errors import TransportError
from tollhouse.backends.http1 import Method, NotSendable, uncached_request_head
from tollhouse.backends.transport import Transport
from tollhouse.base.clock import Clock
from tollhouse.console.id_tokens import (
    ExpectedToken,
    InvalidIdToken,
    JsonObject,
    UnknownSigningKey,
    groups_in,
    verified_claims,
)

ANSWER_BYTES_MAX: Final = 262_144
CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 15.0
KEPT_SECONDS: Final = 3_600.0
"""How long the configuration and the keys are used before they are read again."""
READ_AGAIN_SECONDS: Final = 30.0
"""The least time between two reads, also for an unknown key or after a failure."""
_DISCOVERY: Final = "/.well-known/openid-configuration"
_FORM: Final = "application/x-www-form-urlencoded"
_OK: Final = 200
_URL: Final = re.compile(r"https?://[!-~]+", re.ASCII)

T = TypeVar("T")


class ProviderUnavailable(Exception):
    """The provider does not answer, or not as OpenID Connect says. The message tells which."""


class CodeRefused(Exception):
    """The provider gives nothing for the code: it is unknown, expired or used, or not ours."""


class ProviderMetadata(Struct, frozen=True, kw_only=True):
    """What the provider says of itself; other members are ignored."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _KeySet(Struct, frozen=True, kw_only=True):
    keys: list[JsonObject]


class _TokenAnswer(Struct, frozen=True, kw_only=True):
    id_token: str
    access_token: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderConfig:
    """The gateway as a client of the provider. A client without a secret is a public one."""

    issuer: str
    client_id: str
    client_secret: str | None
    scopes: tuple[str, ...]
    groups_claim: str
    name_claim: str
    redirect_uri: str
    signed_out_uri: str


class _Kept:
    """A document of the provider, read again when it is old, and at a bounded rate."""

    def __init__(self) -> None:
        self.value: object = None
        self.read_at_seconds: float = float("-inf")
        self.lock = asyncio.Lock()


class OpenIdProvider:
    """One per worker. Redirects are not followed; answers are bounded in size and time."""

    def __init__(self, config: ProviderConfig, transport: Transport, clock: Clock) -> None:
        self.config = config
        self._transport = transport
        self._clock = clock
        self._metadata = _Kept()
        self._keys = _Kept()

    async def metadata(self) -> ProviderMetadata:
        """Return the configuration of the provider. Raises `ProviderUnavailable`."""
        url = self.config.issuer.rstrip("/") + _DISCOVERY
        return await self._kept(self._metadata, url, ProviderMetadata, seconds_max=KEPT_SECONDS)

    async def authorization_url(self, *, state: str, nonce: str, challenge: str) -> str:
        """Return where the browser asks the provider to sign the person in."""
        query = {
            "response_type": "code",
            "client_id": self.config.client_id,
            "redirect_uri": self.config.redirect_uri,
            "scope": " ".join(self.config.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return _with_query((await self.metadata()).authorization_endpoint, query)

    async def sign_out_url(self, id_token: str | None) -> str | None:
        """Return where the browser ends the session at the provider, if it has such an address.

        Some providers demand the ID token of the session; others ask the person without it.
        """
        endpoint = (await self.metadata()).end_session_endpoint
        if endpoint is None:
            return None
        query = {
            "client_id": self.config.client_id,
            "post_logout_redirect_uri": self.config.signed_out_uri,
            **({} if id_token is None else {"id_token_hint": id_token}),
        }
        return _with_query(endpoint, query)

    async def claims_for(
        self, code: str, *, verifier: str, nonce: str, now: datetime
    ) -> tuple[JsonObject, str]:
        """Exchange a code for the claims of the person; return them with the ID token.

        The provider is asked for what the ID token lacks of name and groups.

        Raises `CodeRefused`, `InvalidIdToken` or `ProviderUnavailable`.
        """
        metadata = await self.metadata()
        tokens = await self._exchange(metadata, code, verifier)
        expected = ExpectedToken(
            issuer=self.config.issuer, client_id=self.config.client_id, nonce=nonce
        )
        try:
            keys = await self._signing_keys(metadata, seconds_max=KEPT_SECONDS)
            claims = verified_claims(tokens.id_token, keys, expected, now=now)
        except UnknownSigningKey:
            keys = await self._signing_keys(metadata, seconds_max=READ_AGAIN_SECONDS)
            claims = verified_claims(tokens.id_token, keys, expected, now=now)
        is_named = self.config.name_claim in claims
        if is_named and groups_in(claims, self.config.groups_claim) is not None:
            return claims, tokens.id_token
        told = await self._user_info(metadata, tokens, claims)
        return {**told, **claims}, tokens.id_token

    async def _exchange(self, metadata: ProviderMetadata, code: str, verifier: str) -> _TokenAnswer:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.config.redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"content-type": _FORM}
        client_id, secret = self.config.client_id, self.config.client_secret
        methods = metadata.token_endpoint_auth_methods_supported
        if secret is None:
            form["client_id"] = client_id
        elif "client_secret_basic" in methods or "client_secret_post" not in methods:
            pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": client_id, "client_secret": secret}
        body = urlencode(form).encode()
        status, answer = await self._send("POST", metadata.token_endpoint, headers, body)
        if status != _OK:
            raise CodeRefused
        return _decoded(answer, _TokenAnswer)

    async def _signing_keys(
        self, metadata: ProviderMetadata, *, seconds_max: float
    ) -> list[JsonObject]:
        kept = await self._kept(self._keys, metadata.jwks_uri, _KeySet, seconds_max=seconds_max)
        return kept.keys

    async def _user_info(
        self, metadata: ProviderMetadata, tokens: _TokenAnswer, claims: JsonObject
    ) -> JsonObject:
        """Return what the provider says of the person beyond the token, or nothing."""
        if metadata.userinfo_endpoint is None or not tokens.access_token:
            return {}
        headers = {"authorization": f"Bearer {tokens.access_token}"}
        status, answer = await self._send("GET", metadata.userinfo_endpoint, headers, None)
        if status != _OK:
            return {}
        told = _decoded(answer, JsonObject)
        if told.get("sub") != claims["sub"]:
            raise InvalidIdToken
        return told

    async def _kept(self, kept: _Kept, url: str, form: type[T], *, seconds_max: float) -> T:
        async with kept.lock:
            age_seconds = self._clock.monotonic_seconds() - kept.read_at_seconds
            if kept.value is None or age_seconds >= seconds_max:
                if age_seconds < READ_AGAIN_SECONDS:
                    message = f"{url} failed less than {READ_AGAIN_SECONDS:g} s ago"
                    raise ProviderUnavailable(message)
                kept.value = None
                kept.read_at_seconds = self._clock.monotonic_seconds()
                kept.value = self._checked(await self._read(url, form))
            assert isinstance(kept.value, form), "of the form that was read"
            return kept.value

    async def _read(self, url: str, form: type[T]) -> T:
        status, answer = await self._send("GET", url, {"accept": "application/json"}, None)
        if status != _OK:
            message = f"{url} answered with status {status}"
            raise ProviderUnavailable(message)
        return _decoded(answer, form)

    def _checked(self, document: T) -> T:
        """Return a document, if its issuer is ours and browsers may be sent to its addresses."""
        if not isinstance(document, ProviderMetadata):
            return document
        if document.issuer != self.config.issuer:
            message = f"the provider calls itself {document.issuer}, not {self.config.issuer}"
            raise ProviderUnavailable(message)
        for url in (document.authorization_endpoint, document.end_session_endpoint):
            if url is not None and _URL.fullmatch(url) is None:
                message = f"{url!r} is no address to send a browser to"
                raise ProviderUnavailable(message)
        return document

    async def _send(
        self, method: Method, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, bytes]:
        """Send a request; return the status and the body. Raises `ProviderUnavailable`."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._send_in_time(method, url, headers, body)
        except (TransportError, TimeoutError, NotSendable, ValueError) as failure:
            message = f"{url}: {type(failure).__name__}"
            raise ProviderUnavailable(message) from None

    async def _send_in_time(
        self, method: Method, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, bytes]:
        issuer = urlsplit(self.config.issuer)
        head = uncached_request_head(method, url, tuple(headers.items()))
        if issuer.scheme == "https" and not head.origin.is_tls:
            message = f"{url} is not https"
            raise ProviderUnavailable(message)
        connection = await self._transport.connect(head.origin, CONNECT_SECONDS)
        # The operator names the issuer; its document must not lead into the operator's network.
        is_foreign = head.origin.host != issuer.hostname
        if is_foreign and not is_public(connection.peer_address):
            connection.abort()
            message = f"{url} is another host than the issuer, in a private network"
            raise ProviderUnavailable(message)
        response = await self._transport.send_on(connection, head, body)
        try:
            return response.status, await response.read(ANSWER_BYTES_MAX)
        finally:
            response.close()


def _decoded(answer: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError) as failure:
        raise ProviderUnavailable(str(failure)) from None


def _with_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(query)}"
