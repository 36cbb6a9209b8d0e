"""The session of a browser at `/console/session`: the only path where its cookie is read.

GET hands out a bearer token for the API, POST signs in with an Admin key, DELETE signs out. People
begin at `/console/session/start`, and come back from the OpenID provider to `.../callback`.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final
from urllib.parse import parse_qs
from uuid import UUID

import msgspec
from msgspec import Struct

from tollhouse.api import errors
from tollhouse.api.access import sent_key
from tollhouse.api.body import Scope
from tollhouse.api.errors import Presentation
from tollhouse.api.head import Head
from tollhouse.api.session_access import SessionAccess
from tollhouse.api.static_site import PLAIN_TEXT, StaticAnswer, StaticSite, text_answer
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import (
    AdminKeyId,
    RequestId,
    SessionId,
    parse_uuid,
    time_ordered_uuid,
)
from tollhouse.console.cookies import BrowserCookie
from tollhouse.console.sign_in import PersonSignIn
from tollhouse.console.site import CONTENT_SECURITY_POLICY
from tollhouse.contract.errors import ErrorShape
from tollhouse.keys import rules as key_rules
from tollhouse.keys import service as keys
from tollhouse.keys.directory import KeyDirectory
from tollhouse.keys.secrets import digest
from tollhouse.keys.types import Admin
from tollhouse.organizations import service as organizations
from tollhouse.sessions import rules, service
from tollhouse.sessions.types import ConsoleSession
from tollhouse.storage.database import Database, Transaction

ROOT: Final = b"/console/session"
START: Final = ROOT + b"/start"
CALLBACK: Final = ROOT + b"/callback"
OPERATION: Final = "console_session"
_JSON: Final = "application/json"


class ForeignPage(GatewayError):
    """Another page than the console asks for the session."""

    kind = Kind.DENIED
    code = "foreign_page"
    should_retry = False
    template = "Only the console itself may use its session. Open the console at /console."


class OrganizationName(Struct, frozen=True, kw_only=True):
    """An organization in which the session can act."""

    id: str
    name: str


class OpenSession(Struct, frozen=True, kw_only=True):
    """An open session: a token for the API, and where and as whom it acts.

    `name` is the name of the person, or the redacted value of the Admin key. `organizations` are
    those in which a person may act. For a key it is empty: not every key may read the name.
    """

    token: str
    token_seconds: int
    expires_at: int
    is_person: bool
    name: str
    organization_id: str
    organizations: list[OrganizationName]


class SessionState(Struct, frozen=True, kw_only=True):
    """Whether the browser is signed in. `sign_in_url` leads to the OpenID provider."""

    session: OpenSession | None
    sign_in_url: str | None


class SignedOut(Struct, frozen=True, kw_only=True):
    """The session has ended. `sign_out_url` ends the one at the OpenID provider."""

    sign_out_url: str | None


class SessionSite(StaticSite):
    """Answers `/console/session`. One per worker."""

    def __init__(
        self,
        database: Database,
        directory: KeyDirectory,
        access: SessionAccess,
        clock: Clock,
        *,
        cookie: BrowserCookie,
        people: PersonSignIn | None,
        documentation_url: str | None,
    ) -> None:
        super().__init__(
            root=ROOT,
            operation=OPERATION,
            content_security_policy=CONTENT_SECURITY_POLICY,
            clock=clock,
        )
        self._database = database
        self._directory = directory
        self._access = access
        self._cookie = cookie
        self._people = people
        self._documentation_url = documentation_url
        self._sign_in_url = None if people is None else START.decode()
        self._handlers: dict[str, Callable[[Scope, Head, RequestId], Awaitable[StaticAnswer]]] = {
            "GET": self._show,
            "POST": self._sign_in,
            "DELETE": self._sign_out,
        }

    def is_at(self, raw_path: bytes) -> bool:
        """Return whether the path is that of the session, or of a sign-in of people."""
        return raw_path in (ROOT, START, CALLBACK)

    def find(self, path: str) -> StaticAnswer:
        """Return nothing: no file is below the session."""
        return text_answer(404, f"No such page: {path}", PLAIN_TEXT)

    async def answer(self, scope: Scope, head: Head, request_id: RequestId) -> StaticAnswer:
        """Answer a request of the console, and of no other page."""
        method, path = scope["method"], scope["raw_path"]
        if path != ROOT:
            return await self._answer_person(scope, head, request_id)
        handler = self._handlers.get(method)
        if handler is None:
            return _refused_method(*self._handlers)
        try:
            # Absent from programs, and from browsers on plain HTTP.
            if head.values(b"sec-fetch-site") not in ([], [b"same-origin"]):
                raise ForeignPage
            return await handler(scope, head, request_id)
        except GatewayError as failure:
            presentation = Presentation(
                request_id=request_id,
                shape=ErrorShape.OPENAI,
                documentation_url=self._documentation_url,
            )
            reply = errors.render(failure, presentation)
            return text_answer(reply.status, reply.body.decode(), _JSON, *reply.headers)

    async def _answer_person(self, scope: Scope, head: Head, request_id: RequestId) -> StaticAnswer:
        """Answer a step of a person's sign-in, which navigates the browser."""
        if self._people is None:
            return self.find(scope["path"])
        if scope["method"] != "GET":
            return _refused_method("GET")
        if scope["raw_path"] == START:
            return await self._people.start(scope["query_string"])
        return await self._people.complete(
            scope["query_string"], head, request_id, session_cookie=self._cookie
        )

    async def _show(self, scope: Scope, head: Head, _: RequestId) -> StaticAnswer:
        """GET: hand out a token for the organization in the query, or else for the first one."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        wanted = parse_uuid(query.get("organization", [""])[0])
        now = self._clock.now()
        async with self._database.transaction() as tx:
            session = await self._session_of(tx, head, now=now)
            opened = None if session is None else await self._open(tx, session, wanted, now=now)
        return _json_answer(SessionState(session=opened, sign_in_url=self._sign_in_url))

    async def _sign_in(self, _: Scope, head: Head, request_id: RequestId) -> StaticAnswer:
        """POST: begin a session with the Admin key in the header `Authorization`."""
        key = sent_key(head, customer_header=None)
        now = self._clock.now()
        admin = key_rules.working_admin(await self._directory.find(key), now=now)
        session = ConsoleSession(
            id=SessionId(time_ordered_uuid()),
            owner_id=admin.key_id,
            key_digest=digest(key),
            person_name=None,
            groups=(),
            organization_ids=(admin.organization_id,),
            created_at=now,
            expires_at=_end_of(admin, now),
        )
        secret = await service.begin(self._database, session, request_id=request_id)
        async with self._database.transaction() as tx:
            opened = await self._open(tx, session, None, now=now)
        seconds = int(rules.LIFETIME.total_seconds())
        state = SessionState(session=opened, sign_in_url=self._sign_in_url)
        return _json_answer(state, self._cookie.header(secret, seconds=seconds))

    async def _sign_out(self, _: Scope, head: Head, request_id: RequestId) -> StaticAnswer:
        """DELETE: end the session and delete the cookie."""
        now = self._clock.now()
        async with self._database.transaction() as tx:
            session = await self._session_of(tx, head, now=now)
        if session is not None:
            await service.end(self._database, session, now=now, request_id=request_id)
        if self._people is None:
            return _json_answer(SignedOut(sign_out_url=None), self._cookie.deleting_header())
        url = None
        if session is not None and session.person_name is not None:
            url = await self._people.sign_out_url(head)
        cookies = (self._cookie, self._people.hint_cookie)
        deleting = (cookie.deleting_header() for cookie in cookies)
        return _json_answer(SignedOut(sign_out_url=url), *deleting)

    async def _session_of(
        self, tx: Transaction, head: Head, *, now: datetime
    ) -> ConsoleSession | None:
        secret = self._cookie.read(head)
        if secret is None:
            return None
        return await service.find_by_secret(tx, secret, now=now)

    async def _open(
        self, tx: Transaction, session: ConsoleSession, wanted: UUID | None, *, now: datetime
    ) -> OpenSession | None:
        """Return what the console needs, or None if the session cannot act anywhere any more."""
        acting = await self._access.acting_organizations(tx, session, now=now)
        if not acting:
            return None
        chosen = next((each for each in acting if each == wanted), acting[0])
        if session.person_name is not None:
            name = session.person_name
            choices = [await organizations.retrieve(tx, each) for each in acting]
        else:
            key = await keys.retrieve_admin_key(tx, chosen, AdminKeyId(session.owner_id))
            name, choices = key.redacted_value, []
        return OpenSession(
            token=await self._access.tokens.write(tx, session.id, chosen, now=now),
            token_seconds=int(rules.TOKEN_LIFETIME.total_seconds()),
            expires_at=int(session.expires_at.timestamp()),
            is_person=session.person_name is not None,
            name=name,
            organization_id=str(chosen),
            organizations=[OrganizationName(id=str(each.id), name=each.name) for each in choices],
        )


def _end_of(admin: Admin, now: datetime) -> datetime:
    end = now + rules.LIFETIME
    return end if admin.expires_at is None else min(end, admin.expires_at)


def _refused_method(*allowed: str) -> StaticAnswer:
    listed = ", ".join(allowed)
    return text_answer(405, f"This URL accepts {listed}.", PLAIN_TEXT, ("allow", listed))


def _json_answer(body: Struct, *headers: tuple[str, str]) -> StaticAnswer:
    return text_answer(200, msgspec.json.encode(body).decode(), _JSON, *headers)
