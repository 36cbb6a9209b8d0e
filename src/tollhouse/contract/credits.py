"""The wire types of prepaid credit, its entries, and amounts of money."""

from typing import ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.audit import AuditActor
from tollhouse.contract.listing import ListPage
from tollhouse.contract.money import Money, MoneyToSet
from tollhouse.contract.origins import extension


class Credits(Struct, frozen=True, kw_only=True):
    """The credit of an organization."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-167")

    object: Literal["organization.credits"] = "organization.credits"
    balance: Money
    """What was paid in, without the cost of settled requests."""
    available: Money
    """The balance without what is held: what new requests can spend."""
    held: Money
    """What is set aside for requests in progress."""
    unsettled: Money
    """The part of `held` for requests whose final cost is not known yet."""
    is_alerting: bool


class CreditEntry(Struct, frozen=True, kw_only=True):
    """Credit that was added, or taken back by a correction."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-168")

    id: str
    object: Literal["organization.credit_entry"] = "organization.credit_entry"
    kind: Literal["sandbox", "test_payment", "promotional", "correction", "backfill"]
    """Where the credit came from."""
    amount: Money
    """The credit that was added; below zero for a correction that took some back."""
    reason: str
    """Why it was added or corrected, in words of the actor."""
    actor: AuditActor
    """The caller who added it."""
    created_at: int


class CreditEntryList(ListPage, frozen=True, kw_only=True):
    """A page of credit entries, newest first."""

    mark: ClassVar[Meta] = extension("OQ-138", "OQ-168")

    data: list[CreditEntry]


class CreateTestPayment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A payment in a sandbox. The amount must be above zero."""

    mark: ClassVar[Meta] = extension("OQ-169")

    amount: MoneyToSet
    """The credit to add."""
