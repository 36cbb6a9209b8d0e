"""Credit: balance, entries and test payments."""

from dataclasses import dataclass
from uuid import UUID

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase, Creation
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import money as money_wire
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import GrantId, time_ordered_uuid
from tollhouse.contract import credits as credits_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.ledger import service
from tollhouse.ledger.errors import TestPaymentsRefused
from tollhouse.ledger.types import Grant, GrantKind
from tollhouse.storage.database import Mutation

TEST_PAYMENT_REASON = "test payment"


@dataclass(frozen=True, kw_only=True, slots=True)
class CreditHandlers:
    """Handlers of the operations on credit."""

    database: AdminDatabase
    is_sandbox: bool

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/credits"""
        async with self.database.transaction() as tx:
            credit = await service.credit(tx, call.organization_id)
        return OperationAnswer(body=money_wire.credits_(credit))

    async def page(self, call: OperationCall[Admin, None, ListQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/credits/entries"""
        after = parameters.cursor(call.query.after)
        async with self.database.transaction() as tx:
            found = await service.page_grants(
                tx,
                call.organization_id,
                after=None if after is None else GrantId(after),
                limit=call.query.limit + 1,
            )
        show = money_wire.credit_entry
        return OperationAnswer(
            body=wire.page(credits_wire.CreditEntryList, found, call.query.limit, show)
        )

    async def create_test_payment(
        self,
        call: OperationCall[Admin, credits_wire.CreateTestPayment, NoQuery],
    ) -> OperationAnswer:
        """POST /manage/v1/organization/credits/test_payments"""
        if not self.is_sandbox:
            raise TestPaymentsRefused
        grant_id = GrantId(time_ordered_uuid())

        async def make(tx: Mutation) -> Grant:
            return await service.grant(
                tx,
                grant_id=grant_id,
                kind=GrantKind.TEST_PAYMENT,
                amount=money_wire.amount(call.body.amount),
                reason=TEST_PAYMENT_REASON,
            )

        async def find(tx: Mutation, made_id: UUID) -> Grant:
            return await service.retrieve_grant(tx, tx.organization_id, GrantId(made_id))

        created = await self.database.create_once(
            call, Creation(resource_id=grant_id, create=make, find=find)
        )
        return OperationAnswer(
            body=money_wire.credit_entry(created.resource), headers=created.headers
        )
