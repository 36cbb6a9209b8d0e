"""What the handlers of the gateway need, made in the operator's process.

Only what one operation needs is imported: all of it takes longer than many commands take to run.
"""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from tollhouse.base.quotas import OrganizationQuotas
from tollhouse.cli.session import Session
from tollhouse.cli.verbs.host_database import OperatorDatabase
from tollhouse.contract.operation import Operation
from tollhouse.contract.operations import GIVEN_PREFIX
from tollhouse.contract.organization_operations import LIST_AUDIT
from tollhouse.storage.replica import ReportReads

if TYPE_CHECKING:
    from tollhouse.api.handlers.models import ModelHandlers
    from tollhouse.api.handlers.reports import ReportReader
    from tollhouse.api.router import Route
    from tollhouse.catalog.types import Catalog

_UNBOUNDED: Final = 2**31 - 1
_QUOTAS: Final = OrganizationQuotas(
    projects=_UNBOUNDED,
    project_keys=_UNBOUNDED,
    admin_keys=_UNBOUNDED,
    policies=_UNBOUNDED,
    alert_subscriptions=_UNBOUNDED,
)
"""Quotas bound what Admin keys create, not what the operator creates."""


class HostServices:
    """Makes the routes of an operation. What they open is closed with `opened`."""

    def __init__(
        self, session: Session, database: OperatorDatabase, opened: AsyncExitStack
    ) -> None:
        self._session = session
        self._database = database
        self._opened = opened

    async def routes(self, operation: Operation) -> "Iterable[Route]":
        """Return the routes of the package that has the operation."""
        if operation.path.startswith(GIVEN_PREFIX):
            from tollhouse.api import admin_routes  # noqa: PLC0415 - see above

            return admin_routes.routes(
                self._database,
                self._reports(),
                cell=self._session.settings.keys.cell,
                quotas=_QUOTAS,
            )
        return await self._managed_routes(operation)

    async def _managed_routes(self, operation: Operation) -> "Iterable[Route]":
        settings = self._session.settings
        match operation.tag:
            case "Policies":
                return await self._policy_routes(operation)
            case "Alerts":
                return self._alert_routes()
            case "Reports" | "Requests":
                from tollhouse.manage import report_routes  # noqa: PLC0415 - see above

                return report_routes.routes(self._database, self._reports())
            case "Credits" | "Spending limits" | "Rate limits":
                from tollhouse.manage import money_routes  # noqa: PLC0415 - see above

                return money_routes.routes(self._database, is_sandbox=settings.ledger.is_sandbox)
            case "Organization" if operation is not LIST_AUDIT:
                from tollhouse.manage import organization_routes  # noqa: PLC0415 - see above

                return organization_routes.routes(
                    self._database, self._models(), is_sandbox=settings.ledger.is_sandbox
                )
            case _:
                from tollhouse.manage import project_routes  # noqa: PLC0415 - see above

                return project_routes.routes(self._database, settings.keys.cell, _QUOTAS)

    async def _policy_routes(self, operation: Operation) -> "Iterable[Route]":
        from tollhouse.cli.authoring_judge import policy_trials  # noqa: PLC0415 - see above
        from tollhouse.evaluation import PolicyTrials  # noqa: PLC0415 - see above
        from tollhouse.evaluation.dependencies import (  # noqa: PLC0415 - see above
            judge_config,
            publication_check,
        )
        from tollhouse.manage import policy_routes  # noqa: PLC0415 - see above
        from tollhouse.manage.policies import PublicationRules  # noqa: PLC0415 - see above

        trials = PolicyTrials(None)
        if operation.method == "POST":
            # The judge is asked.
            trials = await self._opened.enter_async_context(policy_trials(self._session))
        publication = PublicationRules(
            default_threshold_basis_points=(
                self._session.settings.policies.default_threshold_basis_points
            ),
            check=publication_check(judge_config(self._catalog())),
        )
        return policy_routes.routes(self._database, self._reports(), publication, trials)

    def _alert_routes(self) -> "Iterable[Route]":
        from tollhouse.manage import alert_routes  # noqa: PLC0415 - see above
        from tollhouse.manage.alerts import AlertDestinations  # noqa: PLC0415 - see above

        alerts = self._session.settings.alerts
        destinations = AlertDestinations(
            networks=alerts.networks(),
            email_domains=alerts.email_domains,
            sends_email=alerts.smtp_host is not None,
            subscriptions_max=_UNBOUNDED,
        )
        return alert_routes.routes(self._database, destinations)

    def _reports(self) -> "ReportReader":
        from tollhouse.api.handlers.reports import ReportReader  # noqa: PLC0415 - see above
        from tollhouse.reports.cursors import Cursors  # noqa: PLC0415 - see above

        cursors = Cursors(self._session.masters)
        provider = self._session.settings.exports.provider_name
        return ReportReader(ReportReads(self._session.database), cursors, provider)

    def _models(self) -> "ModelHandlers":
        from tollhouse.api.handlers.models import ModelHandlers  # noqa: PLC0415 - see above

        # Only workers know which backends answer.
        return ModelHandlers(catalog=self._catalog(), is_model_ready=lambda _: True)

    def _catalog(self) -> "Catalog":
        from tollhouse.catalog import rules  # noqa: PLC0415 - see above

        settings = self._session.settings
        return rules.parse(settings.backends, settings.models, settings.judge)
