"""Who calls: from the headers alone, before a byte of the body is read."""

from datetime import datetime

from tollhouse.api.head import Head
from tollhouse.api.house import House
from tollhouse.contract.operation import Access, Credential
from tollhouse.keys import rules
from tollhouse.keys.errors import InvalidKey, MissingKey
from tollhouse.keys.types import Caller, Demand, KeyKind

_KINDS = {Credential.CUSTOMER: KeyKind.PROJECT, Credential.ADMIN: KeyKind.ADMIN}
_BEARER = "bearer "


def sent_key(head: Head, *, customer_header: bytes | None) -> str:
    """The one key that was sent. Two headers may carry it, if they agree."""
    sent = {_bearer(value) for value in head.values(b"authorization")}
    if customer_header is not None:
        sent |= {value.decode("latin-1") for value in head.values(customer_header)}
    if not sent:
        raise MissingKey
    if len(sent) > 1:
        raise InvalidKey
    return sent.pop()


def _bearer(value: bytes) -> str:
    text = value.decode("latin-1")
    if text[: len(_BEARER)].lower() != _BEARER:
        raise InvalidKey
    return text[len(_BEARER) :].strip(" ")


async def authenticate(house: House, head: Head, access: Access, *, now: datetime) -> Caller:
    """The caller, if its key may do what the operation demands."""
    is_customer_route = access.credential is Credential.CUSTOMER
    key = sent_key(head, customer_header=house.customer_header if is_customer_route else None)
    known = await house.directory.find(key)
    demand = Demand(
        kind=_KINDS[access.credential],
        permission=access.permission,
        survives_archive=access.survives_archive,
    )
    caller = rules.let_in(known, demand, now=now)
    house.last_used.mark(caller, now)
    return caller
