"""The managed operations on reports and requests, and the handler of each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.router import Route
from tollhouse.contract import report_operations as operations
from tollhouse.manage.requests import RequestHandlers
from tollhouse.manage.usage import UsageHandlers


def routes(database: AdminDatabase, reports: ReportReader) -> tuple[Route, ...]:
    """Return the route of each operation on reports and requests."""
    usage = UsageHandlers(reports=reports)
    requests = RequestHandlers(database=database, reports=reports)
    return (
        Route(operation=operations.REPORT_USAGE, handler=usage.report),
        Route(operation=operations.REPORT_COMPLETIONS, handler=usage.completions),
        Route(operation=operations.EXPORT_COSTS, handler=usage.focus),
        Route(operation=operations.LIST_REQUESTS, handler=requests.page),
        Route(operation=operations.RETRIEVE_REQUEST, handler=requests.retrieve),
        Route(operation=operations.REPORT_REQUESTS, handler=requests.report),
    )
