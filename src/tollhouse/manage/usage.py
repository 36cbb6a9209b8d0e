"""Usage and its cost by hour or day, and costs as a file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from tollhouse.api.call import FileAnswer, OperationAnswer, OperationCall
from tollhouse.api.handlers import reports
from tollhouse.api.handlers.costs import unsettled
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.wire import money as money_wire
from tollhouse.contract import usage as usage_wire
from tollhouse.keys.types import Admin
from tollhouse.reports import rules
from tollhouse.reports.types import CostSubject, Used


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageHandlers:
    """Handlers of the report of usage."""

    reports: ReportReader

    async def report(
        self, call: OperationCall[Admin, None, usage_wire.UsageQuery]
    ) -> OperationAnswer:
        """GET /manage/v1/organization/usage"""
        return await self._answer(call, usage_wire.UsagePage, usage_wire.UsageBucket, _result)

    async def completions(
        self, call: OperationCall[Admin, None, usage_wire.CompletionsQuery]
    ) -> OperationAnswer:
        """GET /manage/v1/organization/usage/completions"""
        return await self._answer(
            call, usage_wire.CompletionsPage, usage_wire.CompletionsBucket, _completions
        )

    async def _answer(
        self,
        call: OperationCall[Admin, None, Any],
        page_of: Callable[..., Struct],
        bucket_of: Callable[..., Struct],
        result_of: Callable[[Used], Struct],
    ) -> OperationAnswer:
        page = await self.reports.page(call, CostSubject.USAGE)
        body = page_of(
            data=[
                bucket_of(
                    start_time=bucket.span.start,
                    end_time=bucket.span.end,
                    results=[result_of(used) for used in bucket.used],
                )
                for bucket in page.report.buckets
            ],
            has_more=page.next_cursor is not None,
            next_page=page.next_cursor,
            unsettled=unsettled(page.report.buckets),
        )
        return OperationAnswer(body=body, headers=reports.headers(page.report))

    async def focus(self, call: OperationCall[Admin, None, usage_wire.FocusQuery]) -> FileAnswer:
        """GET /manage/v1/organization/costs/focus"""
        return await self.reports.focus(call)


def _result(used: Used) -> usage_wire.UsageResult:
    group, sums = used.group, used.sums
    return usage_wire.UsageResult(
        amount=money_wire.money(rules.total(sums)),
        requests=sums.requests,
        estimated_requests=sums.estimated_requests,
        input_tokens=sums.input_tokens,
        cached_input_tokens=sums.cached_input_tokens,
        cache_write_tokens=sums.cache_write_tokens,
        output_tokens=sums.output_tokens,
        images=sums.images,
        project_id=None if group.project_id is None else str(group.project_id),
        api_key_id=None if group.api_key_id is None else str(group.api_key_id),
        model=group.model,
    )


def _completions(used: Used) -> usage_wire.CompletionsResult:
    group, sums = used.group, used.sums
    return usage_wire.CompletionsResult(
        input_tokens=sums.input_tokens + sums.cached_input_tokens,
        input_cached_tokens=sums.cached_input_tokens,
        input_cache_write_tokens=sums.cache_write_tokens,
        output_tokens=sums.output_tokens,
        num_model_requests=sums.requests,
        project_id=None if group.project_id is None else str(group.project_id),
        api_key_id=None if group.api_key_id is None else str(group.api_key_id),
        model=group.model,
    )
