"""What an operation declares about itself; one that declares too little cannot be made."""

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from tollhouse.base.permissions import ADMIN_PERMISSIONS, CUSTOMER_PERMISSIONS, Permission
from tollhouse.contract.errors import ErrorShape
from tollhouse.contract.origins import Origin

GIVEN_PREFIX = "/v1/"
MANAGE_PREFIX = "/manage/v1/"


class MisdeclaredOperation(Exception):
    """The table of operations contradicts itself; nothing is served from it."""


class Credential(StrEnum):
    """The two kinds of key."""

    CUSTOMER = "customer"
    ADMIN = "admin"


class Guard(StrEnum):
    """What stands between a customer's request and a model."""

    LIMITS = "limits"
    ADMISSION = "admission"
    POLICIES = "policies"


_PERMISSIONS = {
    Credential.CUSTOMER: CUSTOMER_PERMISSIONS,
    Credential.ADMIN: ADMIN_PERMISSIONS,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """Which key may call; `survives_archive`: also a key of an archived project (OQ-89)."""

    credential: Credential
    permission: Permission
    survives_archive: bool = False

    def __post_init__(self) -> None:
        if self.permission not in _PERMISSIONS[self.credential]:
            message = f"no {self.credential} key can hold {self.permission}"
            raise MisdeclaredOperation(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exemption:
    """A guard that an operation does without, and why."""

    guard: Guard
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            message = f"an exemption from {self.guard} needs a reason"
            raise MisdeclaredOperation(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One row of the surface. `statuses` are failures that it may answer, not a closed list.

    `tail_parameter`: the last path parameter takes slashes. `creates_idempotently`: the
    operation demands `Idempotency-Key`. `takes_session`: the edge reads and checks the session
    headers (OQ-45).
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
    result: type[Struct]
    tail_parameter: bool = False
    creates_idempotently: bool = False
    takes_session: bool = False
    streams: bool = False
    error_shape: ErrorShape = ErrorShape.OPENAI
    exemptions: tuple[Exemption, ...] = ()
    statuses: tuple[int, ...]

    def __post_init__(self) -> None:
        for holds, reason in self._demands():
            if not holds:
                message = f"{self.id}: {reason}"
                raise MisdeclaredOperation(message)

    def _demands(self) -> tuple[tuple[bool, str], ...]:
        is_managed = self.path.startswith(MANAGE_PREFIX)
        is_admin = self.access.credential is Credential.ADMIN
        return (
            (is_managed or self.path.startswith(GIVEN_PREFIX), "outside /v1/ and /manage/v1/"),
            (self.origin is Origin.GIVEN or bool(self.questions), "names no open question"),
            (self.origin is not Origin.EXTENSION or is_managed, "an extension outside /manage/v1/"),
            (self.origin is not Origin.GIVEN or not is_managed, "given, but under /manage/v1/"),
            (not (is_admin and self.exemptions), "guards are for customer keys only"),
            (bool(self.statuses), "names no failure"),
        )

    @property
    def guards(self) -> frozenset[Guard]:
        """What every request must pass; a customer's passes all that nothing exempts it from."""
        if self.access.credential is Credential.ADMIN:
            return frozenset()
        return frozenset(Guard) - {exemption.guard for exemption in self.exemptions}
