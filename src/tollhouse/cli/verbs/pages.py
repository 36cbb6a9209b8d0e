"""Reads all pages of a list or of a report as one answer."""

import sys
from typing import Any, Final

import click

from tollhouse.cli.verbs.gateway import Gateway, Headers, OperationRequest
from tollhouse.contract.operation import AnyOperation

PAGE_SIZE: Final = 100
BUCKETS_PER_PAGE: Final = 180
PAGES_MAX: Final = 100
"""The most pages of one list. A page of filtered requests can be empty and have a next one."""


def answer(
    gateway: Gateway,
    operation: AnyOperation,
    request: OperationRequest,
    *,
    shown_max: int,
    after: str | None,
) -> tuple[dict[str, Any], Headers]:
    """Return the answer; of a list or a report all pages as one, up to the limit."""
    names = () if operation.query is None else operation.query.__struct_fields__
    if "after" in names:
        return read_list(gateway, operation, request, shown_max=shown_max, after=after)
    if "page" in names:
        return _read_report(gateway, operation, request)
    return gateway.call(operation, request)


def read_list(
    gateway: Gateway,
    operation: AnyOperation,
    request: OperationRequest,
    *,
    shown_max: int,
    after: str | None,
) -> tuple[dict[str, Any], Headers]:
    """Return up to `shown_max` items of a list as one page."""
    query = dict(request.query)
    if after:
        query["after"] = after
    whole: dict[str, Any] = {}
    headers: Headers = {}
    for _ in range(PAGES_MAX):
        kept: list[object] = whole.get("data", [])
        query["limit"] = min(PAGE_SIZE, shown_max - len(kept))
        page, headers = gateway.call(operation, OperationRequest(path=request.path, query=query))
        first_id = whole.get("first_id") or page["first_id"]
        whole = {**page, "data": kept + page["data"], "first_id": first_id}
        if not page["has_more"] or len(whole["data"]) >= shown_max:
            break
        query["after"] = page["last_id"]
        progress(len(whole["data"]))
    progress(None)
    return whole, headers


def _read_report(
    gateway: Gateway, operation: AnyOperation, request: OperationRequest
) -> tuple[dict[str, Any], Headers]:
    """Return all buckets of a report as one page."""
    query: dict[str, Any] = {**request.query, "limit": BUCKETS_PER_PAGE}
    whole: dict[str, Any] = {}
    while True:
        page, headers = gateway.call(operation, OperationRequest(path=request.path, query=query))
        unsettled = [*whole.get("unsettled", []), *page.get("unsettled", [])]
        whole = {**page, "data": whole.get("data", []) + page["data"]}
        if unsettled:
            whole["unsettled"] = unsettled
        if page["next_page"] is None:
            progress(None)
            return whole, headers
        query["page"] = page["next_page"]
        progress(len(whole["data"]))


def progress(count: int | None) -> None:
    """Show how many items were read on one line of a terminal; None removes the line."""
    if sys.stderr.isatty():
        said = "" if count is None else f"{count} read"
        click.echo(f"\r\x1b[K{said}", nl=False, err=True)
