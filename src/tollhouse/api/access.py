"""Authentication and permits of a request, from its headers alone, before its body is read."""

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Final

from tollhouse.api.admin_permits import AdminPermit
from tollhouse.api.head import Head, decoded
from tollhouse.api.session_access import SessionAccess
from tollhouse.api.unidentified_requests import UnidentifiedRequest, UnidentifiedRequests
from tollhouse.base.ids import RequestId
from tollhouse.contract.bounds import SESSION_ID_LENGTH_MAX
from tollhouse.contract.parameters import SESSION_HEADERS
from tollhouse.inference.errors import SessionInvalid
from tollhouse.inference.meter import tokens_of
from tollhouse.inference.trace import RequestTrace
from tollhouse.keys import rules
from tollhouse.keys.directory import KeyDirectory, LastUsed
from tollhouse.keys.errors import InvalidKey, MissingKey
from tollhouse.keys.secrets import cell_of, digest
from tollhouse.keys.types import Admin, Caller, Customer, KeyKind, RequiredPermission
from tollhouse.limits.limiter import Limiter, Permit
from tollhouse.limits.types import LimitSubject
from tollhouse.observability.log import bounded_text
from tollhouse.sessions.errors import SessionEnded
from tollhouse.sessions.tokens import TOKEN_PREFIX

_BEARER: Final = b"bearer "
_BEARER_LENGTH: Final = len(_BEARER)
LABEL_HEADER: Final = b"x-tollhouse-label"
_SESSION_HEADERS: Final = tuple((name.lower().encode(), name) for name in SESSION_HEADERS)


class AccessControl:
    """One per worker. Project keys may also be sent in the header `customer_header`.

    `cell` is the cell of this deployment, which an unknown key of another cell does not name.
    `session_headers` are headers of other interfaces that name a session (OQ-218).
    """

    def __init__(
        self,
        directory: KeyDirectory,
        last_used: LastUsed,
        limiter: Limiter,
        unidentified: UnidentifiedRequests,
        sessions: SessionAccess,
        *,
        customer_header: str,
        cell: str | None = None,
        session_headers: Sequence[str] = (),
    ) -> None:
        self._directory = directory
        self._last_used = last_used
        self._limiter = limiter
        self._unidentified = unidentified
        self._sessions = sessions
        self._customer_header = customer_header.lower().encode()
        self._cell = cell
        self._session_headers = tuple(name.lower().encode() for name in session_headers)

    def session_of(self, head: Head) -> str | None:
        """Return the session ID of the first session header that was sent, or None.

        Raises `SessionInvalid` if a given header is empty, too long or sent twice. Such a value of
        a further header, which belongs to another interface, is ignored.
        """
        return _given_session(head) or _further_session(head, self._session_headers)

    async def authenticate(
        self, head: Head, required: RequiredPermission, *, now: datetime
    ) -> Caller:
        """Return the caller, if its key has the permission that the operation requires."""
        is_customer_route = required.kind is KeyKind.PROJECT
        key = sent_key(head, customer_header=self._customer_header if is_customer_route else None)
        known = await self._directory.find(key)
        if known is None:
            if key.startswith(TOKEN_PREFIX):
                return await self._by_session(key, required, now=now)
            rules.check_cell(cell_of(key), self._cell)
        caller = rules.authorize(known, required, now=now)
        self._last_used.mark(caller, now)
        return caller

    async def _by_session(self, text: str, required: RequiredPermission, *, now: datetime) -> Admin:
        token = self._sessions.tokens.read(text, now=now)
        if token is None:
            raise SessionEnded
        caller = await self._sessions.authenticate(token, required, now=now)
        if caller.person_name is None:
            self._last_used.mark(caller, now)
        return caller

    def identify_later(self, head: Head, required: RequiredPermission, trace: RequestTrace) -> None:
        """Look up the key of a customer's request once the database answers, to record it."""
        if required.kind is KeyKind.PROJECT:
            key = sent_key(head, customer_header=self._customer_header)
            self._unidentified.add(UnidentifiedRequest(trace, digest(key), required))

    def limit_permit(
        self, customer: Customer, request_id: RequestId, *, prompt_bytes: int | None
    ) -> Awaitable[Permit]:
        """Count the request against the limits of its organization, project and key.

        `prompt_bytes` is the declared size of a body for a model; None for any other request.
        """
        return self._limiter.enter(
            LimitSubject(
                organization_id=customer.organization_id,
                project_id=customer.project_id,
                api_key_id=customer.key_id,
                limits=customer.limits,
                request_id=request_id,
                declared_tokens=None if prompt_bytes is None else tokens_of(prompt_bytes),
            )
        )

    def admin_permit(self, admin: Admin) -> Awaitable[AdminPermit]:
        """Wait until the organization may run one more Admin request."""
        return self._sessions.admin_permits.acquire(admin.organization_id)


def sent_key(head: Head, *, customer_header: bytes | None) -> str:
    """Return the key that was sent. Two headers may carry it if both have the same value."""
    sent: bytes | None = None
    for value in head.by_name.get(b"authorization", ()):
        if value[:_BEARER_LENGTH].lower() != _BEARER:
            raise InvalidKey
        key = value[_BEARER_LENGTH:].strip(b" ")
        if sent is not None and sent != key:
            raise InvalidKey
        sent = key
    if customer_header is not None and customer_header in head.by_name:
        for key in head.by_name[customer_header]:
            if sent is not None and sent != key:
                raise InvalidKey
            sent = key
    if sent is None:
        raise MissingKey
    return sent.decode("latin-1")


def label_of(head: Head) -> str | None:
    """Return what the caller wants to find the record of its request by, or None."""
    values = head.by_name.get(LABEL_HEADER)
    return bounded_text(decoded(values[0])) if values else None


def _given_session(head: Head) -> str | None:
    session: str | None = None
    for header, name in _SESSION_HEADERS:
        values = head.by_name.get(header)
        if not values:
            continue
        text = decoded(values[0])
        if len(values) > 1 or not 1 <= len(text) <= SESSION_ID_LENGTH_MAX:
            raise SessionInvalid(param=name, length_max=SESSION_ID_LENGTH_MAX)
        session = session or text
    return session


def _further_session(head: Head, headers: Sequence[bytes]) -> str | None:
    for header in headers:
        values = head.by_name.get(header)
        if values and len(values) == 1 and 1 <= len(values[0]) <= SESSION_ID_LENGTH_MAX:
            return decoded(values[0])
    return None
