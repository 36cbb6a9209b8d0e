"""Conversion of credit and spending limits into wire types, and of amounts into integers."""

from tollhouse.api.wire import resources as wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.money import PicoUsd, from_decimal_string, to_decimal_string
from tollhouse.contract import credits as credits_wire
from tollhouse.contract import spending_limits as limits_wire
from tollhouse.contract.money import Money, MoneyToSet
from tollhouse.ledger.types import CapScope, CapUse, Credit, Grant


def money(amount: PicoUsd) -> Money:
    """Convert an amount into its decimal string."""
    return Money(value=to_decimal_string(amount))


def amount(written: MoneyToSet) -> PicoUsd:
    """Convert an amount of a request. The contract has already checked its form."""
    read = from_decimal_string(written.value)
    assert read is not None, "the contract's pattern is the rule of base.money, without a sign"
    return read


def credits_(credit: Credit) -> credits_wire.Credits:
    """Return the credit of an organization."""
    return credits_wire.Credits(
        balance=money(credit.balance_pico_usd),
        available=money(credit.available_pico_usd),
        held=money(credit.reserved_pico_usd),
        unsettled=money(credit.unsettled_pico_usd),
        is_alerting=credit.is_alerting,
    )


def credit_entry(grant: Grant) -> credits_wire.CreditEntry:
    """Convert an entry, with its author."""
    return credits_wire.CreditEntry(
        id=str(grant.id),
        kind=grant.kind.value,
        amount=money(grant.amount_pico_usd),
        reason=grant.reason,
        actor=wire.actor(grant.actor_type, grant.actor_id),
        created_at=unix_seconds(grant.created_at),
    )


def spending_limit(use: CapUse) -> limits_wire.SpendingLimit:
    """Convert a spending limit and its use."""
    cap = use.cap
    return limits_wire.SpendingLimit(
        id=cap.place.text,
        scope=cap.scope.value,
        project_id=str(cap.scope_id) if cap.scope is CapScope.PROJECT else None,
        api_key_id=str(cap.scope_id) if cap.scope is CapScope.KEY else None,
        period=cap.period.value,
        limit=money(cap.limit_pico_usd),
        used=money(use.settled_pico_usd),
        held=money(use.reserved_pico_usd),
        remaining=money(use.remaining_pico_usd),
        alert_percent=cap.alert_percent,
        is_alerting=use.is_alerting,
    )
