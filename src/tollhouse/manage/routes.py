"""The operations under `/manage/v1`, and the handler that serves each."""

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.handlers.models import ModelHandlers
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.router import Route
from tollhouse.base.quotas import OrganizationQuotas
from tollhouse.evaluation import PolicyTrials
from tollhouse.manage import (
    money_routes,
    organization_routes,
    policy_routes,
    project_routes,
    report_routes,
)
from tollhouse.manage.policies import PublicationRules


def routes(
    database: AdminDatabase,
    reports: ReportReader,
    *,
    cell: str | None,
    quotas: OrganizationQuotas,
    publication: PublicationRules,
    trials: PolicyTrials,
    models: ModelHandlers,
    is_sandbox: bool,
) -> tuple[Route, ...]:
    """Return the route of each operation under `/manage/v1`, without those on alerts."""
    return (
        *organization_routes.routes(database, models, is_sandbox=is_sandbox),
        *project_routes.routes(database, cell, quotas),
        *policy_routes.routes(database, reports, publication, trials),
        *money_routes.routes(database, is_sandbox=is_sandbox),
        *report_routes.routes(database, reports),
    )
