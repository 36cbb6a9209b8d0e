"""Costs as rows of FOCUS 1.2, the FinOps Open Cost and Usage Specification, in CSV.

A row is one line item of a project key on one UTC day, or on the part of a day that the range
contains. Unit prices are left out: they may change within a day. Amounts are exact decimals.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from tollhouse.base.money import PicoUsd, to_decimal_string
from tollhouse.reports import rules
from tollhouse.reports.types import CostPart, ReportSpan, Used

COLUMNS: Final = (
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency"),
    *("BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass"),
    *("ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart"),
    *("ConsumedQuantity", "ConsumedUnit", "ContractedCost", "EffectiveCost", "InvoiceIssuerName"),
    *("ListCost", "PricingCategory", "PricingQuantity", "PricingUnit", "ProviderName"),
    *("PublisherName", "ServiceCategory", "ServiceName", "ServiceSubcategory"),
    *("SubAccountId", "SubAccountName"),
    *("x_ApiKeyId", "x_ApiKeyName", "x_Model", "x_LineItem"),
)
_UNITS: Final = {
    CostPart.INPUT: "Tokens",
    CostPart.CACHED_INPUT: "Tokens",
    CostPart.CACHE_WRITE: "Tokens",
    CostPart.OUTPUT: "Tokens",
    CostPart.REQUEST: "Requests",
    CostPart.IMAGE: "Images",
}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, kw_only=True, slots=True)
class FocusAccount:
    """What all rows of an export have in common, and the names of projects and keys by ID."""

    organization_id: UUID
    organization_name: str
    provider_name: str
    names: Mapping[UUID, str]


def header() -> str:
    """Return the first line."""
    return _csv([COLUMNS])


def lines(account: FocusAccount, span: ReportSpan, used: Iterable[Used]) -> str:
    """Return the lines of one day, or of the part of it that `span` is."""
    period = _charge_period(span)
    rows: list[list[str]] = []
    for item in used:
        for part, quantity, amount in rules.cost_parts(item):
            charge = _charge(account, item, part, quantity=quantity, amount=amount)
            row = {**_constants(account), **period, **charge}
            # A null is an empty field.
            rows.append([row.get(name, "") for name in COLUMNS])
    return _csv(rows)


def _charge(
    account: FocusAccount, item: Used, part: CostPart, *, quantity: int, amount: PicoUsd
) -> dict[str, str]:
    group = item.group
    assert group.project_id is not None, "the rows are grouped by project and key"
    assert group.api_key_id is not None, "the rows are grouped by project and key"
    cost, line_item = to_decimal_string(amount), f"{group.model}, {part}"
    return {
        **dict.fromkeys(("BilledCost", "ContractedCost", "EffectiveCost", "ListCost"), cost),
        **dict.fromkeys(("ConsumedQuantity", "PricingQuantity"), str(quantity)),
        **dict.fromkeys(("ConsumedUnit", "PricingUnit"), _UNITS[part]),
        "ChargeDescription": _harmless(line_item),
        "SubAccountId": str(group.project_id),
        "SubAccountName": _harmless(account.names.get(group.project_id, "")),
        "x_ApiKeyId": str(group.api_key_id),
        "x_ApiKeyName": _harmless(account.names.get(group.api_key_id, "")),
        "x_Model": _harmless(group.model or ""),
        "x_LineItem": _harmless(line_item),
    }


def _constants(account: FocusAccount) -> dict[str, str]:
    provider = _harmless(account.provider_name)
    return {
        "BillingAccountId": str(account.organization_id),
        "BillingAccountName": _harmless(account.organization_name),
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "PricingCategory": "Standard",
        **dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), provider),
        "ServiceCategory": "AI and Machine Learning",
        "ServiceName": "Model inference",
        "ServiceSubcategory": "Generative AI",
    }


def _charge_period(span: ReportSpan) -> dict[str, str]:
    start = datetime.fromtimestamp(span.start, UTC)
    month = start.replace(day=1, hour=0, minute=0, second=0)
    is_december = month.month == 12  # noqa: PLR2004 - the last month
    after = month.replace(
        year=month.year + is_december, month=1 if is_december else month.month + 1
    )
    return {
        "BillingPeriodStart": _instant(month),
        "BillingPeriodEnd": _instant(after),
        "ChargePeriodStart": _instant(start),
        "ChargePeriodEnd": _instant(datetime.fromtimestamp(span.end, UTC)),
    }


def _instant(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def _harmless(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _csv(rows: Iterable[Iterable[str]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()
