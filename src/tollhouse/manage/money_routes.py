"""The managed operations on money, traffic and their reports, and the handler of each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.router import Route
from tollhouse.contract import money_operations, organization_operations, report_operations
from tollhouse.manage.attribution import AttributionHandlers
from tollhouse.manage.credits import CreditHandlers
from tollhouse.manage.rate_limits import RateLimitHandlers
from tollhouse.manage.requests import RequestHandlers
from tollhouse.manage.spending_limits import SpendingLimitHandlers
from tollhouse.manage.usage import UsageHandlers


def routes(
    database: AdminDatabase, reports: ReportReader, *, is_sandbox: bool
) -> tuple[Route, ...]:
    """Return the route of each operation on credit, limits, reports, requests and attribution."""
    credit = CreditHandlers(database=database, is_sandbox=is_sandbox)
    spending_limits = SpendingLimitHandlers(database=database)
    usage = UsageHandlers(reports=reports)
    return (
        Route(operation=money_operations.RETRIEVE_CREDITS, handler=credit.retrieve),
        Route(operation=money_operations.LIST_CREDIT_ENTRIES, handler=credit.page),
        Route(operation=money_operations.CREATE_TEST_PAYMENT, handler=credit.create_test_payment),
        Route(operation=money_operations.LIST_SPENDING_LIMITS, handler=spending_limits.page),
        Route(operation=money_operations.SET_SPENDING_LIMIT, handler=spending_limits.set_),
        Route(operation=money_operations.CLEAR_SPENDING_LIMIT, handler=spending_limits.clear),
        Route(operation=report_operations.REPORT_USAGE, handler=usage.report),
        Route(operation=report_operations.REPORT_COMPLETIONS, handler=usage.completions),
        Route(operation=report_operations.EXPORT_COSTS, handler=usage.focus),
        *_traffic_routes(database, reports),
        *_attribution_routes(database),
    )


def _traffic_routes(database: AdminDatabase, reports: ReportReader) -> tuple[Route, ...]:
    rate_limits = RateLimitHandlers(database=database)
    requests = RequestHandlers(database=database, reports=reports)
    return (
        Route(operation=money_operations.LIST_RATE_LIMITS, handler=rate_limits.page),
        Route(operation=money_operations.SET_RATE_LIMIT, handler=rate_limits.set_),
        Route(operation=money_operations.CLEAR_RATE_LIMIT, handler=rate_limits.clear),
        Route(operation=report_operations.LIST_REQUESTS, handler=requests.page),
        Route(operation=report_operations.RETRIEVE_REQUEST, handler=requests.retrieve),
        Route(operation=report_operations.REPORT_REQUESTS, handler=requests.report),
    )


def _attribution_routes(database: AdminDatabase) -> tuple[Route, ...]:
    attribution = AttributionHandlers(database=database)
    return (
        Route(operation=organization_operations.RETRIEVE_ATTRIBUTION, handler=attribution.retrieve),
        Route(operation=organization_operations.SET_ATTRIBUTION, handler=attribution.change),
        Route(operation=organization_operations.DELETE_ATTRIBUTED_VALUE, handler=attribution.erase),
    )
