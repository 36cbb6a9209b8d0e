"""A page for every `code` that a caller of the API can get."""

import importlib
import pkgutil
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from http import HTTPStatus
from importlib import resources
from operator import attrgetter
from typing import get_args

import msgspec

import tollhouse
from tollhouse.base.errors import GatewayError, InvalidCode, InvalidInput, InvalidRequest
from tools.reference.error_pages import ErrorDescription, error_bodies
from tools.reference.tables import table

NOT_OF_THE_API = (
    "tollhouse.cli",
    "tollhouse.trial",
    "tollhouse.storage.migrations",
)
HEAD = """\
# Errors

Every failure has one form: an object `error` with `message`, `type`, `param`, `code` and
`doc_url`. Act on `code`; `message` is for people and may change. The gateway serves these pages at
`/docs/errors`. If `server.public_url` is set, `doc_url` is the address of the code's page.
`errors.documentation_url` sets another address for the pages.

"""
PAGE = """\
# {code}

Status {statuses}.

## What it means

{meanings}

## What to do

{remedy}
"""


def pages() -> dict[str, str]:
    """Return the pages by their paths below docs/reference."""
    found = descriptions()
    rows = [(f"[{each.code}]({each.code}.md)", each.statuses, each.remedy) for each in found]
    return {
        "errors/index.md": HEAD + table(("code", "status", "what to do"), rows),
        **{
            f"errors/{each.code}.md": PAGE.format(
                code=each.code,
                statuses=each.statuses,
                meanings=_list(each.meanings),
                remedy=each.remedy,
            )
            for each in found
        },
    }


def data() -> str:
    """Return the pages that the gateway serves itself."""
    encoded = msgspec.json.encode(error_bodies(descriptions()))
    return msgspec.json.format(encoded, indent=1).decode() + "\n"


def descriptions() -> list[ErrorDescription]:
    """Return the description of every code. Raises KeyError for a code without a remedy."""
    remedies = tomllib.loads(
        (resources.files("tools.reference") / "remedies.toml").read_text(encoding="utf-8")
    )
    return [
        ErrorDescription(
            code=code,
            statuses=_statuses(classes),
            meanings=_meanings(classes),
            remedy=remedies[code],
        )
        for code, classes in by_code().items()
    ]


def by_code() -> dict[str, list[type[GatewayError]]]:
    """Return the error classes of each code that the API can return."""
    for module in pkgutil.walk_packages(tollhouse.__path__, "tollhouse."):
        if not module.name.startswith(NOT_OF_THE_API):
            importlib.import_module(module.name)
    found: dict[str, list[type[GatewayError]]] = defaultdict(list)
    for code in get_args(InvalidCode):
        found[code].append(InvalidRequest)
    for failure in _below(GatewayError):
        code = getattr(failure, "code", None)
        is_of_the_api = not failure.__module__.startswith(NOT_OF_THE_API)
        if isinstance(code, str) and is_of_the_api and not issubclass(failure, InvalidInput):
            found[code].append(failure)
    return dict(sorted(found.items()))


def _below(failure: type[GatewayError]) -> Iterator[type[GatewayError]]:
    for derived in sorted(failure.__subclasses__(), key=attrgetter("__module__", "__name__")):
        yield derived
        yield from _below(derived)


def _statuses(classes: list[type[GatewayError]]) -> str:
    kinds = sorted({int(failure.kind) for failure in classes})
    return ", ".join(f"{kind} {HTTPStatus(kind).phrase}" for kind in kinds)


def _meanings(classes: list[type[GatewayError]]) -> list[str]:
    return list(dict.fromkeys(" ".join((failure.__doc__ or "").split()) for failure in classes))


def _list(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else "\n".join(f"- {text}" for text in texts)
