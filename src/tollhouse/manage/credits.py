"""Credit: what is left, what it is made of, and test payments."""

from uuid import UUID

from tollhouse.api import money_wire, parameters, wire
from tollhouse.api.call import Answer, Call
from tollhouse.api.idempotency import Creation, create_once
from tollhouse.base.ids import GrantId, time_ordered_uuid
from tollhouse.contract import credits as credits_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.ledger import service
from tollhouse.ledger.errors import TestPaymentsRefused
from tollhouse.ledger.types import Grant, GrantKind
from tollhouse.storage.database import Mutation

TEST_PAYMENT_REASON = "test payment"


async def retrieve(call: Call[Admin, None, NoQuery]) -> Answer:
    """GET /manage/v1/organization/credits"""
    async with call.house.database.transaction() as tx:
        credit = await service.credit(tx, call.organization_id)
    return Answer(body=money_wire.credits_(credit))


async def page(call: Call[Admin, None, ListQuery]) -> Answer:
    """GET /manage/v1/organization/credits/entries"""
    after = parameters.cursor(call.query.after)
    async with call.house.database.transaction() as tx:
        found = await service.page_grants(
            tx,
            call.organization_id,
            after=None if after is None else GrantId(after),
            limit=call.query.limit + 1,
        )
    show = money_wire.credit_entry
    return Answer(body=wire.page(credits_wire.CreditEntryList, found, call.query.limit, show))


async def create_test_payment(
    call: Call[Admin, credits_wire.CreateTestPayment, NoQuery],
) -> Answer:
    """POST /manage/v1/organization/credits/test_payments"""
    if not call.house.is_sandbox:
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

    created = await create_once(call, Creation(resource_id=grant_id, create=make, find=find))
    return Answer(body=money_wire.credit_entry(created.resource), headers=created.headers)
