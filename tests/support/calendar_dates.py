"""Dates on which every test must hold, as variables that move the clock of a process.

`env $(python -m tests.support.calendar_dates leap-day) COMMAND` runs a command on a leap day: first
the PostgreSQL of the tests, then pytest. Redis keeps the real time.
"""

import argparse
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.support.wrong_clocks import wrong_clock

DATES = {
    "after-midnight": datetime(2027, 2, 1, 0, 1, tzinfo=UTC),  # Monday, the first of a month
    "leap-day": datetime(2028, 2, 29, 12, tzinfo=UTC),  # Tuesday
    "before-midnight": datetime(2027, 6, 30, 23, 57, tzinfo=UTC),  # Wednesday, the last of a month
    "thursday": datetime(2027, 5, 13, 9, tzinfo=UTC),
    "year-end": datetime(2027, 12, 31, 23, 55, tzinfo=UTC),  # Friday
    "saturday": datetime(2027, 8, 14, 15, tzinfo=UTC),
    "week-end": datetime(2027, 7, 4, 23, 55, tzinfo=UTC),  # Sunday
}
CHANGES = ("clock-change-spring", "clock-change-autumn")
YEAR_OF_CHANGES = 2027
BEFORE_CHANGE = timedelta(minutes=3)
"""So that clocks change while the tests run."""
HOUR = timedelta(hours=1)


def clock_changes(zone: ZoneInfo) -> dict[str, datetime]:
    """Return when the clocks of a zone go forward and back, if they do."""
    changes: dict[str, datetime] = {}
    at = datetime(YEAR_OF_CHANGES, 1, 1, tzinfo=UTC)
    while at.year == YEAR_OF_CHANGES:
        change = _ahead(zone, at) - _ahead(zone, at - HOUR)
        if change:
            changes[CHANGES[change < timedelta()]] = at
        at += HOUR
    return changes


def _ahead(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).replace(tzinfo=UTC) - at


def changing_zone() -> ZoneInfo:
    """Return the zone of the host, or Berlin's if the clocks of the host's never change."""
    linked = Path("/etc/localtime").resolve().as_posix().partition("zoneinfo/")[2]
    zone = ZoneInfo(os.environ.get("TZ") or linked or "UTC")
    return zone if clock_changes(zone) else ZoneInfo("Europe/Berlin")


def variables(name: str) -> dict[str, str]:
    """Return the variables of a process that lives on a date."""
    if name in DATES:
        return wrong_clock(DATES[name] - datetime.now(UTC))
    zone = changing_zone()
    begin = clock_changes(zone)[name] - BEFORE_CHANGE
    return {**wrong_clock(begin - datetime.now(UTC)), "TZ": zone.key}


def main() -> None:
    """Print the variables of one date, which an eval or `env` takes, or the names of all."""
    names = [*DATES, *CHANGES]
    parser = argparse.ArgumentParser(prog="python -m tests.support.calendar_dates")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("name", nargs="?", choices=names)
    chosen.add_argument("--draw", type=int, metavar="SEED")
    chosen.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        lines = names
    else:
        name = str(options.name or names[int(options.draw) % len(names)])
        sys.stderr.write(f"calendar date: {name}\n")
        lines = [f"{variable}={value}" for variable, value in variables(name).items()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
