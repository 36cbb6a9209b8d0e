"""The audit log of the caller's organization, newest first."""

from dataclasses import dataclass

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import resources as wire
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import AuditId
from tollhouse.contract import audit as audit_wire
from tollhouse.contract.listing import ListQuery
from tollhouse.keys.types import Admin
from tollhouse.storage import audit


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditHandlers:
    """Handlers of the audit log."""

    database: AdminDatabase

    async def page(self, call: OperationCall[Admin, None, ListQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/audit"""
        cursor = parameters.cursor(call.query.after)
        after = None if cursor is None else AuditId(cursor)
        async with self.database.transaction() as tx:
            if after is not None and not await audit.exists(tx, call.organization_id, after):
                raise UnknownCursor
            found = await audit.page(
                tx, call.organization_id, after=after, limit=call.query.limit + 1
            )
        return OperationAnswer(
            body=wire.page(audit_wire.AuditList, found, call.query.limit, wire.audit_entry)
        )
