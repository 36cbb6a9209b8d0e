"""Attribution: what is stored, and deletion of a value."""

from dataclasses import dataclass

from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.attribution import service
from tollhouse.attribution.types import AttributionSetting, ErasedValue
from tollhouse.base.ids import OrganizationId
from tollhouse.contract import attribution as wire
from tollhouse.contract.listing import NoQuery
from tollhouse.keys.types import Admin
from tollhouse.observability.log import bounded_text


@dataclass(frozen=True, kw_only=True, slots=True)
class AttributionHandlers:
    """Handlers of the operations on attribution."""

    database: AdminDatabase

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/attribution"""
        async with self.database.transaction() as tx:
            found = await service.retrieve(tx, call.organization_id)
        return OperationAnswer(body=shown_setting(call.organization_id, found))

    async def change(
        self, call: OperationCall[Admin, wire.SetAttribution, NoQuery]
    ) -> OperationAnswer:
        """PUT /manage/v1/organization/attribution"""
        changed = AttributionSetting(
            dimensions=tuple(dict.fromkeys(call.body.dimensions)),
            retention_days=call.body.retention_days,
        )
        async with self.database.mutation_by(call) as tx:
            stored = await service.change(tx, changed)
        return OperationAnswer(body=shown_setting(call.organization_id, stored))

    async def erase(
        self, call: OperationCall[Admin, wire.DeleteAttributedValue, NoQuery]
    ) -> OperationAnswer:
        """POST /manage/v1/organization/attribution/deletions"""
        value = bounded_text(call.body.value) or ""
        async with self.database.mutation_by(call) as tx:
            erased = await service.erase(tx, dimension=call.body.dimension, value=value)
        return OperationAnswer(body=shown_erasure(call.organization_id, erased))


def shown_erasure(
    organization_id: OrganizationId, erased: ErasedValue
) -> wire.AttributedValueDeleted:
    """Return a deletion as the interface shows it."""
    return wire.AttributedValueDeleted(
        id=str(organization_id), deleted=erased.days > 0, days=erased.days
    )


def shown_setting(
    organization_id: OrganizationId, setting: AttributionSetting
) -> wire.AttributionSettings:
    """Return a setting as the interface shows it."""
    return wire.AttributionSettings(
        id=str(organization_id),
        dimensions=list(setting.dimensions),
        retention_days=setting.retention_days,
    )
