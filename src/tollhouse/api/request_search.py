"""Requests together with policies that refused or were selected by them, for API and commands."""

from dataclasses import dataclass, replace
from datetime import datetime

from tollhouse.activity import rules, service
from tollhouse.activity.types import RecordFilter, RecordPage
from tollhouse.api.wire import requests as request_wire
from tollhouse.base.ids import OrganizationId, PolicyId, RequestId
from tollhouse.decisions import service as decisions
from tollhouse.decisions.selecting import selecting_requests
from tollhouse.decisions.types import BlockingDecision, DecisionCursor
from tollhouse.policies import service as policies
from tollhouse.policies.types import Policy, PolicyScope
from tollhouse.storage.database import Transaction

BlockedRequests = dict[RequestId, list[BlockingDecision]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestSearch:
    """The requests to return; with a policy only those on which it matched or failed."""

    only: RecordFilter
    policy_id: PolicyId | None = None


async def page(
    tx: Transaction,
    organization_id: OrganizationId,
    search: RequestSearch,
    *,
    after: RequestId | None,
    limit: int,
) -> RecordPage:
    """Return a page of requests, newest first.

    Raises `PolicyNotFound`, `RecordProjectNotFound`, `RecordKeyNotFound` or `UnknownCursor`.
    """
    if search.policy_id is None:
        return await service.page(tx, organization_id, search.only, after=after, limit=limit)
    await policies.retrieve(tx, organization_id, search.policy_id)
    newest, oldest = rules.bounds(rules.cursor(after), search.only)
    request_ids, may_have_more = await decisions.requests_of_policy(
        tx,
        organization_id,
        search.policy_id,
        before=DecisionCursor(day=newest.day, request_id=newest.request_id, direction=""),
        since=DecisionCursor(day=oldest.day, request_id=oldest.request_id, direction=""),
    )
    only = replace(search.only, request_ids=request_ids)
    found = await service.page(tx, organization_id, only, after=after, limit=limit)
    if found.has_more or not may_have_more:
        return found
    # The filter matched fewer requests than the page has room for: the next search goes on after
    # the last decision that this one read.
    last_id = await service.last_recorded(tx, organization_id, request_ids)
    return replace(found, has_more=last_id is not None, last_id=last_id)


async def blocked(
    tx: Transaction, organization_id: OrganizationId, found: RecordPage
) -> BlockedRequests:
    """Return the policies that refused the requests of a page, by request."""
    return await decisions.blocking(tx, organization_id, request_wire.policed(found.records))


async def selecting(tx: Transaction, policy: Policy, *, now: datetime) -> int:
    """Return how many of the latest requests selected a published policy by `policy_ids`.

    Requests to which it applies by its scope are not counted.
    """
    assert policy.published is not None, "only published policies can be selected"
    content = policy.published.content
    if content.scope is PolicyScope.ORGANIZATION:
        return 0
    covered = content.project_ids if content.scope is PolicyScope.PROJECTS else ()
    return await selecting_requests(tx, policy.organization_id, policy.id, covered, now=now)
