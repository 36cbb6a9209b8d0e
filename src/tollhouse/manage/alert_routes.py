"""The operations on alerts, and the handler of each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.router import Route
from tollhouse.contract import alert_operations as operations
from tollhouse.manage.alerts import AlertDestinations, AlertHandlers


def routes(database: AdminDatabase, destinations: AlertDestinations) -> tuple[Route, ...]:
    """Return the route of each operation on alerts."""
    alerts = AlertHandlers(database=database, destinations=destinations)
    return (
        Route(operation=operations.LIST_ALERT_SUBSCRIPTIONS, handler=alerts.page),
        Route(operation=operations.CREATE_ALERT_SUBSCRIPTION, handler=alerts.create),
        Route(operation=operations.RETRIEVE_ALERT_SUBSCRIPTION, handler=alerts.retrieve),
        Route(operation=operations.EDIT_ALERT_SUBSCRIPTION, handler=alerts.edit),
        Route(operation=operations.DELETE_ALERT_SUBSCRIPTION, handler=alerts.delete),
        Route(operation=operations.ROTATE_ALERT_SECRET, handler=alerts.rotate_secret),
        Route(operation=operations.TEST_ALERT_SUBSCRIPTION, handler=alerts.test),
        Route(operation=operations.RETRY_ALERT_DELIVERIES, handler=alerts.retry),
        Route(operation=operations.LIST_ALERT_DELIVERIES, handler=alerts.page_of_deliveries),
    )
