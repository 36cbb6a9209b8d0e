"""The sign-in of a person: to the OpenID provider, and back with a code.

A cookie has what the way back needs, so that any worker can answer it: a random secret. State,
nonce and PKCE verifier are digests of the secret, so the state belongs to one browser. The session
that a state makes stores it, so that it makes no second one.
"""

import asyncio
import base64
import hashlib
import logging
import re
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final
from urllib.parse import parse_qs
from uuid import UUID

from tollhouse.api.head import Head
from tollhouse.api.session_access import SessionAccess
from tollhouse.api.static_site import PLAIN_TEXT, StaticAnswer, text_answer
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import RequestId, SessionId, time_ordered_uuid
from tollhouse.console.cookies import BrowserCookie
from tollhouse.console.id_tokens import InvalidIdToken, JsonObject, groups_in
from tollhouse.console.provider import CodeRefused, OpenIdProvider, ProviderUnavailable
from tollhouse.sessions import rules, service
from tollhouse.sessions.errors import SignInReplayed
from tollhouse.sessions.tokens import Signer
from tollhouse.sessions.types import ConsoleSession, GroupGrant
from tollhouse.storage.database import Database

logger = logging.getLogger("tollhouse.console")

STARTED_LIFETIME: Final = timedelta(minutes=10)
COMPLETED_AT_ONCE_MAX: Final = 8
"""Sign-ins of one worker that wait for the provider; further ones are refused."""
NAME_LENGTH_MAX: Final = 200
HINT_LENGTH_MAX: Final = 3_500
"""Browsers refuse a cookie of more than 4,096 bytes. A longer ID token is not kept."""
_SECRET_BYTES: Final = 32
_START_PAGE: Final = "/console"
_OWN_PAGE: Final = re.compile(r"/console(?:/[A-Za-z0-9._~%/-]*)?(?:\?[A-Za-z0-9._~%&=+:,-]*)?")
_OWN_PAGE_LENGTH_MAX: Final = 1_000
_NAME_CLAIMS: Final = ("email", "preferred_username", "name", "sub")


class SignInFailure(StrEnum):
    """Why a sign-in did not succeed, as the console tells it."""

    DENIED = "denied"
    EXPIRED = "expired"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    NOT_PERMITTED = "not_permitted"


class SignInRefused(Exception):
    """The sign-in ends here. The message is for the operator's log."""

    def __init__(self, failure: SignInFailure, reason: str) -> None:
        self.failure = failure
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class StartedSignIn:
    """A sign-in that one browser has started."""

    secret: str
    return_to: str

    @property
    def state(self) -> str:
        """What the provider must send back."""
        return self._digest("state")

    @property
    def nonce(self) -> str:
        """What the ID token must contain."""
        return self._digest("nonce")

    @property
    def verifier(self) -> str:
        """What the provider demands with the code (PKCE)."""
        return self._digest("verifier")

    @property
    def challenge(self) -> str:
        """The digest of the verifier, by S256."""
        return _base64(hashlib.sha256(self.verifier.encode()).digest())

    def _digest(self, purpose: str) -> str:
        return _base64(hashlib.sha256(f"{purpose} {self.secret}".encode()).digest())


class PersonSignIn:
    """Signs people in. One per worker, and nothing of a sign-in is kept in its memory."""

    def __init__(
        self,
        provider: OpenIdProvider,
        database: Database,
        access: SessionAccess,
        signer: Signer,
        clock: Clock,
        *,
        cookie: BrowserCookie,
        hint_cookie: BrowserCookie,
    ) -> None:
        self._provider = provider
        self._database = database
        self._access = access
        self._signer = signer
        self._clock = clock
        self._cookie = cookie
        self.hint_cookie = hint_cookie
        self._permits = asyncio.Semaphore(COMPLETED_AT_ONCE_MAX)

    async def start(self, query_string: bytes) -> StaticAnswer:
        """Send the browser to the provider. `return_to` is a page of the console, or ignored."""
        wanted = _parameters(query_string).get("return_to", "")
        is_own = len(wanted) <= _OWN_PAGE_LENGTH_MAX and _OWN_PAGE.fullmatch(wanted)
        started = StartedSignIn(
            secrets.token_urlsafe(_SECRET_BYTES), wanted if is_own else _START_PAGE
        )
        try:
            url = await self._provider.authorization_url(
                state=started.state, nonce=started.nonce, challenge=started.challenge
            )
            content = f"{started.secret}\n{started.return_to}".encode()
            expires_at = self._clock.now() + STARTED_LIFETIME
            async with self._database.transaction() as tx:
                value = await self._signer.sign(tx, content, expires_at=expires_at)
        except (ProviderUnavailable, GatewayError) as failure:
            return _failed(SignInRefused(SignInFailure.UNAVAILABLE, str(failure)))
        seconds = int(STARTED_LIFETIME.total_seconds())
        return _redirect(url, self._cookie.header(value, seconds=seconds))

    async def complete(
        self,
        query_string: bytes,
        head: Head,
        request_id: RequestId,
        *,
        session_cookie: BrowserCookie,
    ) -> StaticAnswer:
        """Begin the session of the person who comes back from the provider.

        The page that follows asks for the session by itself, which is a request of the same site:
        browsers then send the cookie, although the provider has led them here.
        """
        try:
            started = self._started(head)
            code = await self._code(started, _parameters(query_string))
            session, id_token = await self._session(started, code)
            secret = await service.begin(
                self._database,
                session,
                request_id=request_id,
                state_digest=service.digest_of(started.state),
            )
        except SignInRefused as refused:
            return _failed(refused, self._cookie.deleting_header())
        except SignInReplayed:
            replayed = SignInRefused(SignInFailure.EXPIRED, "the sign-in has made a session before")
            return _failed(replayed, self._cookie.deleting_header())
        except GatewayError as failure:
            unavailable = SignInRefused(SignInFailure.UNAVAILABLE, failure.code)
            return _failed(unavailable, self._cookie.deleting_header())
        seconds = int(rules.LIFETIME.total_seconds())
        hint = self.hint_cookie.deleting_header()
        if len(id_token) <= HINT_LENGTH_MAX:
            hint = self.hint_cookie.header(id_token, seconds=seconds)
        set_cookie = session_cookie.header(secret, seconds=seconds)
        return _redirect(started.return_to, set_cookie, hint, self._cookie.deleting_header())

    async def sign_out_url(self, head: Head) -> str | None:
        """Return where the session at the provider is ended; None if there is no such address."""
        try:
            return await self._provider.sign_out_url(self.hint_cookie.read(head))
        except ProviderUnavailable:
            return None

    def _started(self, head: Head) -> StartedSignIn:
        value = self._cookie.read(head)
        content = None if value is None else self._signer.verify(value, now=self._clock.now())
        if content is None:
            raise SignInRefused(SignInFailure.EXPIRED, "this browser has started no sign-in")
        secret, _, return_to = content.decode().partition("\n")
        return StartedSignIn(secret, return_to)

    async def _code(self, started: StartedSignIn, parameters: dict[str, str]) -> str:
        """Return the code of an answer that belongs to this browser's sign-in."""
        if not secrets.compare_digest(parameters.get("state", "").encode(), started.state.encode()):
            raise SignInRefused(SignInFailure.EXPIRED, "the state is not of this browser")
        try:
            metadata = await self._provider.metadata()
        except ProviderUnavailable as failure:
            raise SignInRefused(SignInFailure.UNAVAILABLE, str(failure)) from None
        issuer = self._provider.config.issuer
        is_named = metadata.authorization_response_iss_parameter_supported
        if parameters.get("iss", "" if is_named else issuer) != issuer:
            raise SignInRefused(SignInFailure.REFUSED, "the answer is of another provider")
        if "error" in parameters or not parameters.get("code"):
            raise SignInRefused(SignInFailure.DENIED, "the provider gave no code")
        return parameters["code"]

    async def _session(self, started: StartedSignIn, code: str) -> tuple[ConsoleSession, str]:
        """Return the session of the person where their groups may act, and the ID token."""
        now = self._clock.now()
        if self._permits.locked():
            raise SignInRefused(SignInFailure.UNAVAILABLE, "too many sign-ins at once")
        try:
            async with self._permits:
                claims, id_token = await self._provider.claims_for(
                    code, verifier=started.verifier, nonce=started.nonce, now=now
                )
        except (CodeRefused, InvalidIdToken) as failure:
            reason = f"{type(failure).__name__} {failure}".strip()
            raise SignInRefused(SignInFailure.REFUSED, reason) from None
        except ProviderUnavailable as failure:
            raise SignInRefused(SignInFailure.UNAVAILABLE, str(failure)) from None
        said = groups_in(claims, self._provider.config.groups_claim) or []
        grants = self._access.grants
        session = ConsoleSession(
            id=SessionId(time_ordered_uuid()),
            owner_id=person_id(self._provider.config.issuer, claims["sub"]),
            key_digest=None,
            person_name=_name(claims, self._provider.config.name_claim),
            groups=_granted_groups(grants, said),
            organization_ids=rules.granted_organizations(grants, said),
            created_at=now,
            expires_at=now + rules.LIFETIME,
        )
        async with self._database.transaction() as tx:
            acting = await self._access.acting_organizations(tx, session, now=now)
        if not acting:
            raise SignInRefused(SignInFailure.NOT_PERMITTED, "no grant fits the person's groups")
        return replace(session, organization_ids=tuple(acting)), id_token


def person_id(issuer: str, subject: str) -> UUID:
    """Return the ID of a person, which is the same at every sign-in and in every cell."""
    return UUID(bytes=hashlib.sha256(f"{issuer}\n{subject}".encode()).digest()[:16], version=5)


def _granted_groups(grants: tuple[GroupGrant, ...], said: list[str]) -> tuple[str, ...]:
    """Return the groups that have a grant: others are not the gateway's business."""
    return tuple(sorted({grant.group for grant in grants} & set(said)))


def _name(claims: JsonObject, claim: str) -> str:
    values: list[Any] = [claims.get(name) for name in (claim, *_NAME_CLAIMS)]
    name = next(value for value in values if isinstance(value, str) and value.strip())
    shown = "".join(character if character.isprintable() else "?" for character in name)
    return shown[:NAME_LENGTH_MAX]


def _parameters(query_string: bytes) -> dict[str, str]:
    """Return the parameters that occur once. Of two, no reader can tell which is meant."""
    parsed = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    return {name: values[0] for name, values in parsed.items() if len(values) == 1}


def _failed(refused: SignInRefused, *headers: tuple[str, str]) -> StaticAnswer:
    """Lead to the sign-in page, which tells what happened."""
    extra = {"outcome": refused.failure.value, "reason": str(refused)}
    logger.warning("sign_in_refused", extra=extra)
    return _redirect(f"{_START_PAGE}?sign_in={refused.failure}", *headers)


def _redirect(url: str, *headers: tuple[str, str]) -> StaticAnswer:
    return text_answer(303, "", PLAIN_TEXT, ("location", url), *headers)


def _base64(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
