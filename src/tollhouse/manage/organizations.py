"""The caller's organization, and the models that it can use."""

from dataclasses import dataclass

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.handlers.models import ModelHandlers
from tollhouse.base.clock import unix_seconds
from tollhouse.base.policies import DEMONSTRATION_JUDGE
from tollhouse.contract import models as models_wire
from tollhouse.contract import organizations as organizations_wire
from tollhouse.contract.listing import NoQuery
from tollhouse.keys.types import Admin
from tollhouse.organizations import service


@dataclass(frozen=True, kw_only=True, slots=True)
class OrganizationHandlers:
    """Handlers of the operations on the organization."""

    database: AdminDatabase
    models: ModelHandlers
    is_sandbox: bool

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization"""
        async with self.database.transaction() as tx:
            organization = await service.retrieve(tx, call.organization_id)
        body = organizations_wire.Organization(
            id=str(organization.id),
            name=organization.name,
            created_at=unix_seconds(organization.created_at),
            is_sandbox=self.is_sandbox,
            judge=self._judge(),
        )
        return OperationAnswer(body=body)

    async def list_models(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/models"""
        async with self.database.transaction() as tx:
            checks = await service.checks(tx, call.organization_id)
        granted = frozenset(check.name for check in checks)
        shown = self.models.shown(granted_checks=granted, allowed_models=None)
        return OperationAnswer(body=models_wire.ModelList(data=shown))

    def _judge(self) -> organizations_wire.Judge | None:
        judge = self.models.catalog.judge
        if judge is None:
            return None
        return organizations_wire.Judge(
            model=judge.model, is_demonstration=judge.model == DEMONSTRATION_JUDGE
        )
