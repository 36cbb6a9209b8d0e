"""The declaration of an operation. One that contradicts itself raises `MisdeclaredOperation`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct

from tollhouse.base.permissions import ADMIN_PERMISSIONS, CUSTOMER_PERMISSIONS, Permission
from tollhouse.contract.command import Command
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.origins import Origin

GIVEN_PREFIX = "/v1/"
MANAGE_PREFIX = "/manage/v1/"
COMPAT_PREFIX = "/compat/"

# The failures that an operation may answer. Only the list of chat is given; none is closed (OQ-03).
# The statuses 405, 408 and 431 can come from any route, before an operation is reached.
CHAT = (400, 401, 402, 403, 404, 409, 413, 415, 422, 429, 500, 501, 502, 503, 504)
COUNTING = (400, 401, 403, 404, 413, 415, 422, 429, 500, 501, 502, 503, 504)
READING = (400, 401, 403, 404, 429, 500, 503)
ASKING = (400, 401, 403, 404, 413, 415, 429, 500, 503)
WRITING = (400, 401, 403, 404, 409, 413, 415, 429, 500, 503)


class MisdeclaredOperation(Exception):
    """A declaration of an operation contradicts itself, so that the gateway does not start."""


class Credential(StrEnum):
    """The kinds of key."""

    CUSTOMER = "customer"
    ADMIN = "admin"


class Guard(StrEnum):
    """A check that a customer's request passes before a model generates."""

    LIMITS = "limits"
    ADMISSION = "admission"
    POLICIES = "policies"


_PREFIXES = (GIVEN_PREFIX, MANAGE_PREFIX, COMPAT_PREFIX)
_PERMISSIONS = {
    Credential.CUSTOMER: CUSTOMER_PERMISSIONS,
    Credential.ADMIN: ADMIN_PERMISSIONS,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """The key that an operation needs. `survives_archive` also allows keys of archived projects."""

    credential: Credential
    permission: Permission
    survives_archive: bool = False

    def __post_init__(self) -> None:
        if self.permission not in _PERMISSIONS[self.credential]:
            message = f"no {self.credential} key can hold {self.permission}"
            raise MisdeclaredOperation(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exemption:
    """A guard that an operation does not need, and the reason."""

    guard: Guard
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            message = f"an exemption from {self.guard} needs a reason"
            raise MisdeclaredOperation(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One route: what it needs and what it answers. `statuses` is not a closed list of failures.

    `tail_parameter`: the last path parameter takes slashes. `accepts_post`: POST does the same, as
    OpenAI's SDK sends it. `creates_idempotently`: the operation takes `Idempotency-Key`, and
    demands it if it is given (OQ-95). `takes_session`: the session headers are read and checked
    (OQ-45). `result`: None for a file in CSV. `guards`: what a request of a customer key must
    pass; `exemptions` take from all. `command`: its verb on the command line.
    """

    id: str
    method: str
    path: str
    tag: str
    summary: str
    access: Access
    origin: Origin
    questions: tuple[str, ...] = ()
    body: type[Struct] | None = None
    query: type[Struct] | None = None
    result: type[Struct] | None
    tail_parameter: bool = False
    accepts_post: bool = False
    creates_idempotently: bool = False
    takes_session: bool = False
    streams: bool = False
    error_shape: ErrorShape = ErrorShape.OPENAI
    exemptions: tuple[Exemption, ...] = ()
    statuses: tuple[int, ...]
    command: Command | None = None
    guards: frozenset[Guard] = field(init=False)

    def __post_init__(self) -> None:
        for holds, reason in self._demands():
            if not holds:
                message = f"{self.id}: {reason}"
                raise MisdeclaredOperation(message)
        is_admin = self.access.credential is Credential.ADMIN
        exempted = Guard if is_admin else (exemption.guard for exemption in self.exemptions)
        object.__setattr__(self, "guards", frozenset(Guard).difference(exempted))

    @property
    def demands_idempotency_key(self) -> bool:
        """Whether a request without `Idempotency-Key` is refused."""
        return self.creates_idempotently and self.origin is Origin.GIVEN

    def _demands(self) -> tuple[tuple[bool, str], ...]:
        is_managed = self.path.startswith(MANAGE_PREFIX)
        is_admin = self.access.credential is Credential.ADMIN
        return (
            (self.path.startswith(_PREFIXES), f"outside {', '.join(_PREFIXES)}"),
            (self.origin is Origin.GIVEN or bool(self.questions), "names no open question"),
            (self.origin is not Origin.EXTENSION or is_managed, "an extension outside /manage/v1/"),
            (
                self.origin is not Origin.GIVEN or self.path.startswith(GIVEN_PREFIX),
                "given, but outside /v1/",
            ),
            (not (is_admin and self.exemptions), "guards are for customer keys only"),
            (bool(self.statuses), "names no failure"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorOperation:
    """What only the operator may do, on a host that has the configuration.

    No route serves it and no credential holds it: only the command line runs it, in its own
    process. The fields are those of `Operation`; `path` is the place that its records name.
    """

    id: str
    method: str
    path: str
    body: type[Struct] | None = None
    query: type[Struct] | None = None
    result: type[Struct]
    creates_idempotently: bool = False
    is_of_organization: bool = True
    command: Command


AnyOperation = Operation | OperatorOperation


def declare(  # noqa: PLR0913 - everything that operations differ in
    id_: str,
    route: str,
    summary: str,
    *questions: str,
    tag: str,
    permission: Permission,
    result: type[Struct] | None,
    body: type[Struct] | None = None,
    query: type[Struct] | None = None,
    statuses: tuple[int, ...] | None = None,
    generates_nothing: str = "",
    survives_archive: bool = False,
    tail_parameter: bool = False,
    accepts_post: bool = False,
    creates_idempotently: bool = False,
    takes_session: bool = False,
    streams: bool = False,
    error_shape: ErrorShape = ErrorShape.OPENAI,
    command: Command | None = None,
) -> Operation:
    """Return an operation, given its route as "METHOD /path".

    The permission decides the kind of key, the path and the questions decide the origin, and the
    method decides the statuses unless they are named. `generates_nothing` is the reason why
    neither credit nor policies are checked.
    """
    method, _, path = route.partition(" ")
    return Operation(
        id=id_,
        method=method,
        path=path,
        tag=tag,
        summary=summary,
        access=_access(permission, survives_archive=survives_archive),
        origin=_origin(path, questions),
        questions=questions,
        body=body,
        query=query,
        result=result,
        tail_parameter=tail_parameter,
        accepts_post=accepts_post,
        creates_idempotently=creates_idempotently,
        takes_session=takes_session,
        streams=streams,
        error_shape=error_shape,
        exemptions=_exemptions(generates_nothing),
        statuses=statuses or (READING if method == "GET" else WRITING),
        command=command,
    )


def _access(permission: Permission, *, survives_archive: bool) -> Access:
    is_customer = permission in CUSTOMER_PERMISSIONS
    return Access(
        credential=Credential.CUSTOMER if is_customer else Credential.ADMIN,
        permission=permission,
        survives_archive=survives_archive,
    )


def _exemptions(reason: str) -> tuple[Exemption, ...]:
    exempted = (Guard.ADMISSION, Guard.POLICIES) if reason else ()
    return tuple(Exemption(guard=guard, reason=reason) for guard in exempted)


def _origin(path: str, questions: tuple[str, ...]) -> Origin:
    if path.startswith(MANAGE_PREFIX):
        return Origin.EXTENSION
    return Origin.ADOPTED if questions else Origin.GIVEN


def declared_in(namespace: Mapping[str, object]) -> tuple[Operation, ...]:
    """Return the operations that are constants of a module, in their order."""
    return tuple(value for value in namespace.values() if isinstance(value, Operation))
