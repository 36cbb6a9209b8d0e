"""The managed operations on credit, spending limits and rate limits, and the handler of each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.router import Route
from tollhouse.contract import money_operations as operations
from tollhouse.manage.credits import CreditHandlers
from tollhouse.manage.rate_limits import RateLimitHandlers
from tollhouse.manage.spending_limits import SpendingLimitHandlers


def routes(database: AdminDatabase, *, is_sandbox: bool) -> tuple[Route, ...]:
    """Return the route of each operation on credit, spending limits and rate limits."""
    credit = CreditHandlers(database=database, is_sandbox=is_sandbox)
    spending_limits = SpendingLimitHandlers(database=database)
    rate_limits = RateLimitHandlers(database=database)
    return (
        Route(operation=operations.RETRIEVE_CREDITS, handler=credit.retrieve),
        Route(operation=operations.LIST_CREDIT_ENTRIES, handler=credit.page),
        Route(operation=operations.CREATE_TEST_PAYMENT, handler=credit.create_test_payment),
        Route(operation=operations.LIST_SPENDING_LIMITS, handler=spending_limits.page),
        Route(operation=operations.SET_SPENDING_LIMIT, handler=spending_limits.set_),
        Route(operation=operations.CLEAR_SPENDING_LIMIT, handler=spending_limits.clear),
        Route(operation=operations.LIST_RATE_LIMITS, handler=rate_limits.page),
        Route(operation=operations.SET_RATE_LIMIT, handler=rate_limits.set_),
        Route(operation=operations.CLEAR_RATE_LIMIT, handler=rate_limits.clear),
    )
