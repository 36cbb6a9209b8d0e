"""A second `ledger verify` that shares nothing with the first: it reads rows and adds them up here.

An error in the production statements would hide the same error in the ledger. This one has another
form: every entry is read once and added to what it should have changed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from tollhouse.storage.database import Database, Row, Transaction

LIFETIME = date.min
USED = (
    *("requests", "estimated_requests", "input_tokens", "cached_input_tokens", "output_tokens"),
    *("images", "input_pico", "cached_input_pico", "output_pico", "image_pico", "request_pico"),
    *("cache_write_tokens", "cache_write_pico"),
)
"""What the reports add up."""
PARTS = ("input_pico", "cached_input_pico", "output_pico", "image_pico", "request_pico")
OF_HOLD = ("held_pico", "price_revision", "project_id", "api_key_id")
"""What a resolution has from its hold."""

Spender = tuple[UUID, UUID, UUID, str]
"""Organization, project, key and model."""
Place = tuple[Any, ...]
Sums = dict[str, int]


def _sums() -> defaultdict[Place, Sums]:
    return defaultdict(lambda: defaultdict(int))


@dataclass
class Expected:
    """What the tables should hold, by the key of the row."""

    accounts: defaultdict[Place, Sums] = field(default_factory=_sums)
    counters: defaultdict[Place, Sums] = field(default_factory=_sums)
    short: defaultdict[Place, Sums] = field(default_factory=_sums)
    """Settled and reserved by day and by week, with the length of the window."""
    daily: defaultdict[Place, Sums] = field(default_factory=_sums)
    hourly: defaultdict[Place, Sums] = field(default_factory=_sums)
    open_holds: dict[Place, int] = field(default_factory=dict[Place, int])

    def spend(self, day: date, spender: Spender, **amounts: int) -> None:
        """Count settled and reserved amounts in the account and in all windows."""
        organization_id, project_id, key_id, _ = spender
        scopes = {"organization": organization_id, "project": project_id, "api_key": key_id}
        places = [
            (organization_id, scope, scope_id, window)
            for scope, scope_id in scopes.items()
            for window in (day.replace(day=1), LIFETIME)
        ]
        monday = day - timedelta(days=day.weekday())
        short = [
            self.short[organization_id, scope, scope_id, days, start]
            for scope, scope_id in scopes.items()
            for days, start in ((1, day), (7, monday))
        ]
        counted = [self.accounts[organization_id,], *(self.counters[key] for key in places), *short]
        for sums in counted:
            for name, amount in amounts.items():
                sums[name] += amount

    def use(self, day: date, hour: datetime, spender: Spender, used: Mapping[str, int]) -> None:
        """Count usage in the reports."""
        for sums in (self.daily[day, *spender], self.hourly[hour, *spender]):
            for name in USED:
                sums[name] += used[name]


async def faults(database: Database, *, fallbacks: Collection[str] = ()) -> list[str]:
    """Return everything that grants, entries and closings do not explain, of all organizations.

    A resolution has the model of its hold, unless it is one of `fallbacks`.
    """
    async with database.snapshot() as tx:
        await tx.execute("LOCK TABLE ONLY ledger_entries IN ACCESS SHARE MODE")
        closed = {row["day"] for row in await tx.fetch_all("SELECT day FROM closed_days")}
        expected = Expected()
        found = [*await _read_entries(tx, expected, closed, fallbacks), *await _price_faults(tx)]
        await _read_closings(tx, expected)
        await _read_grants(tx, expected)
        found += await _compare_accounts(tx, expected)
        found += await _compare_counters(tx, expected)
        found += await _compare_costs(tx, expected, closed)
        found += await _compare_unsettled(tx, expected)
        return found


async def _read_entries(
    tx: Transaction, expected: Expected, closed: set[date], fallbacks: Collection[str]
) -> list[str]:
    rows = await tx.fetch_all("SELECT * FROM ledger_entries ORDER BY phase")
    holds: dict[Place, Row] = {}
    found: list[str] = []
    for row in rows:
        if row["admitted_day"] in closed:
            continue
        key = row["organization_id"], row["reservation_id"]
        if row["phase"] == 0:
            holds[key] = row
            expected.spend(row["admitted_day"], _spender(row), reserved=row["held_pico"])
        else:
            found += _resolve(expected, holds.pop(key, None), row, fallbacks)
    expected.open_holds = {key: row["held_pico"] for key, row in holds.items()}
    return found


def _resolve(
    expected: Expected, hold: Row | None, row: Row, fallbacks: Collection[str]
) -> Iterator[str]:
    name = f"resolution {row['reservation_id']}"
    if hold is None:
        yield f"{name} has no hold"
    elif any(hold[name] != row[name] for name in OF_HOLD):
        yield f"{name} is not that of its hold"
    elif row["model"] != hold["model"] and row["model"] not in fallbacks:
        yield f"{name} is of {row['model']}, its hold of {hold['model']}"
    posted = sum(row[part] for part in PARTS)
    if posted != row["posted_pico"] or posted > row["held_pico"]:
        yield f"{name} posts {row['posted_pico']}, its parts {posted}, its hold {row['held_pico']}"
    rest = row["held_pico"] - posted if row["kind"] == "write_off" else 0
    if row["unknown_pico"] != rest:
        yield f"{name} writes off {row['unknown_pico']} of {rest}"
    day, spender = row["admitted_day"], _spender(row)
    expected.spend(day, spender, reserved=-row["held_pico"], settled=posted)
    expected.accounts[spender[0],]["excess"] += row["excess_pico"]
    expected.accounts[spender[0],]["unknown"] += row["unknown_pico"]
    if row["kind"] == "post" or posted > 0:
        used = {"requests": 1, "estimated_requests": int(row["is_estimated"])}
        used |= {name: row[name] for name in USED if name not in used}
        expected.use(day, _hour(row["admitted_at"]), spender, used)


async def _price_faults(tx: Transaction) -> list[str]:
    """Return what is charged at other prices than those of its model in its price list."""
    lists = {
        row["id"]: msgspec.json.decode(row["prices"])
        for row in await tx.fetch_all("SELECT id, prices FROM price_revisions")
    }
    rows = await tx.fetch_all("SELECT * FROM ledger_entries WHERE phase = 1 AND posted_pico > 0")
    return [
        f"resolution {row['reservation_id']} of {row['model']} posts {charged} for {part}"
        for row in rows
        if (prices := lists.get(row["price_revision"])) is not None
        for part, charged, possible in _charged(row, prices.get(row["model"]))
        if charged not in possible
    ]


def _charged(row: Row, prices: Mapping[str, str] | None) -> Iterator[tuple[str, int, range]]:
    """Yield each line item with what may be charged for it, which is less where a hold was cut."""
    if prices is None:
        yield "a model without a price", row["posted_pico"], range(0)
        return
    pico = {name: int(Decimal(text) * 10**12) for name, text in prices.items()}
    written = row["cache_write_tokens"] if "input_cache_write" in pico else 0
    read = row["input_tokens"] - written
    input_pico = read * pico["prompt"] + written * pico.get("input_cache_write", 0)
    cheap, dear = sorted((pico["completion"], pico["reasoning"]))
    items = {
        "input": (input_pico, input_pico),
        "cached_input": (row["cached_input_tokens"] * pico["input_cache_read"],) * 2,
        "output": (row["output_tokens"] * cheap, row["output_tokens"] * dear),
        "image": (row["images"] * pico["image"],) * 2,
        "request": (pico["request"],) * 2,
    }
    for part, (least, most) in items.items():
        yield part, row[f"{part}_pico"], range(0 if row["excess_pico"] else least, most + 1)


async def _read_closings(tx: Transaction, expected: Expected) -> None:
    for row in await tx.fetch_all("SELECT * FROM ledger_closings"):
        day, spender = row["admitted_day"], _spender(row)
        expected.spend(day, spender, settled=sum(int(row[part]) for part in PARTS))
        expected.accounts[spender[0],]["excess"] += int(row["excess_pico"])
        expected.accounts[spender[0],]["unknown"] += int(row["unknown_pico"])
        if row["requests"]:
            midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
            expected.use(day, midnight, spender, {name: int(row[name]) for name in USED})


async def _read_grants(tx: Transaction, expected: Expected) -> None:
    for row in await tx.fetch_all("SELECT * FROM credit_grants"):
        expected.accounts[row["organization_id"],]["credit"] += int(row["amount_pico"])


async def _compare_accounts(tx: Transaction, expected: Expected) -> list[str]:
    stored: dict[Place, Sums] = {}
    for row in await tx.fetch_all("SELECT * FROM accounts"):
        sums = expected.accounts[row["organization_id"],]
        sums["ceiling"] = max(sums["credit"], sums["settled"] + sums["reserved"])
        stored[row["organization_id"],] = {
            "credit": int(row["credit_pico"]),
            "settled": int(row["settled_pico"]),
            "reserved": int(row["reserved_pico"]),
            "ceiling": int(row["ceiling_pico"]),
            "excess": int(row["written_off_excess_pico"]),
            "unknown": int(row["written_off_unknown_pico"]),
        }
    return list(_differences("account", expected.accounts, stored))


async def _compare_counters(tx: Transaction, expected: Expected) -> list[str]:
    caps = {
        (row["organization_id"], row["scope"], row["scope_id"], row["period"]): row
        for row in await tx.fetch_all("SELECT * FROM spending_caps")
    }
    stored: dict[Place, Sums] = {}
    found: list[str] = []
    for row in await tx.fetch_all("SELECT * FROM spending_counters"):
        scope = row["organization_id"], row["scope"], row["scope_id"]
        key = (*scope, row["window_start"])
        period = "lifetime" if row["window_start"] == LIFETIME else "month"
        cap = caps.get((*scope, period))
        sums = expected.counters[key]
        if cap is not None:
            limit, percent = int(cap["limit_pico"]), cap["alert_percent"]
            sums["limit"] = limit
            sums["alert"] = -(-limit * percent // 100)
            sums["ceiling"] = max(limit, sums["settled"] + sums["reserved"])
        names = ("settled", "reserved", "limit", "alert", "ceiling")
        amounts: dict[str, Decimal | None] = {name: row[f"{name}_pico"] for name in names}
        stored[key] = {name: int(one) for name, one in amounts.items() if one is not None}
        found += _short_faults(expected, row, caps)
    return found + list(_differences("counter", expected.counters, stored))


def _short_faults(expected: Expected, row: Row, caps: Mapping[Place, Row]) -> Iterator[str]:
    """Compare the newest day of a month's row, or week of a lifetime's, and the one before."""
    scope = row["organization_id"], row["scope"], row["scope_id"]
    is_week, start = row["window_start"] == LIFETIME, row["short_start"]
    days = 7 if is_week else 1
    before: Sums = defaultdict(int)
    if start > LIFETIME and (is_week or start.day > 1):
        before = expected.short.get((*scope, days, start - timedelta(days=days)), before)
    now = expected.short.get((*scope, days, start), defaultdict(int))
    amounts: dict[str, int | None] = {
        "short_settled_pico": now["settled"],
        "short_reserved_pico": now["reserved"],
        "previous_settled_pico": before["settled"],
        "previous_reserved_pico": before["reserved"],
        **dict.fromkeys(("short_limit_pico", "short_alert_pico", "short_ceiling_pico")),
    }
    cap = caps.get((*scope, "week" if is_week else "day"))
    if cap is not None:
        limit = int(cap["limit_pico"])
        amounts["short_limit_pico"] = limit
        amounts["short_alert_pico"] = -(-limit * cap["alert_percent"] // 100)
        amounts["short_ceiling_pico"] = max(limit, now["settled"] + now["reserved"])
    for name, amount in amounts.items():
        if row[name] != amount:
            yield f"counter {scope} {start} {name} is {row[name]}, not {amount}"


async def _compare_costs(tx: Transaction, expected: Expected, closed: set[date]) -> list[str]:
    daily, hourly = _sums(), _sums()
    for row in await tx.fetch_all("SELECT * FROM cost_daily"):
        daily[row["day"], *_spender(row)] = {name: int(row[name]) for name in USED}
    for row in await tx.fetch_all("SELECT * FROM cost_hourly"):
        hour = row["hour"].astimezone(UTC)
        # Of a closed day only the sum of its hours is known.
        begin = hour.replace(hour=0) if hour.date() in closed else hour
        for name in USED:
            hourly[begin, *_spender(row)][name] += int(row[name])
    return [
        *_differences("cost_daily", expected.daily, daily),
        *_differences("cost_hourly", expected.hourly, hourly),
    ]


async def _compare_unsettled(tx: Transaction, expected: Expected) -> list[str]:
    rows = await tx.fetch_all("SELECT * FROM unsettled_holds")
    return [
        f"unsettled {row['reservation_id']} holds {row['held_pico']}"
        for row in rows
        if expected.open_holds.get((row["organization_id"], row["reservation_id"]))
        != row["held_pico"]
    ]


def _differences(
    table: str, expected: Mapping[Place, Sums], found: Mapping[Place, Sums]
) -> Iterator[str]:
    for key in expected.keys() | found.keys():
        ours, theirs = expected.get(key, {}), found.get(key, {})
        for name in ours.keys() | theirs.keys():
            if ours.get(name, 0) != theirs.get(name, 0):
                yield f"{table} {key}: {name} is {theirs.get(name)}, expected {ours.get(name)}"


def _spender(row: Row) -> Spender:
    return row["organization_id"], row["project_id"], row["api_key_id"], row["model"]


def _hour(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
