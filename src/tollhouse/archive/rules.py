"""Pure rules of the archive: total sums, and how two sets of sums differ."""

from collections.abc import Iterable

from tollhouse.archive.types import DaySums, SumsByOrganization


def total(parts: Iterable[DaySums], *, summed: Iterable[str]) -> DaySums:
    """Return the sum of several sums."""
    known = list(parts)
    return DaySums(
        rows=sum(part.rows for part in known),
        sums={name: sum(part.sums[name] for part in known) for name in summed},
    )


def merged(first: SumsByOrganization, second: SumsByOrganization) -> SumsByOrganization:
    """Return the sums of both, by organization."""
    result = dict(first)
    for organization_id, sums in second.items():
        known = result.get(organization_id)
        result[organization_id] = sums if known is None else total((known, sums), summed=sums.sums)
    return result


def comparable(
    closings: SumsByOrganization, entries: SumsByOrganization
) -> tuple[SumsByOrganization, SumsByOrganization]:
    """Return closings and entries with only the sums that both have, and no organization of zero.

    An organization whose holds of the day all were voided has no closing. A sum that files of an
    earlier version lack is 0.
    """
    names = {name for sums in closings.values() for name in sums.sums}
    cut = {
        organization_id: DaySums(
            rows=0, sums={name: sums.sums.get(name, 0) for name in sorted(names)}
        )
        for organization_id, sums in entries.items()
    }
    ordered = {
        organization_id: DaySums(rows=0, sums={name: sums.sums[name] for name in sorted(names)})
        for organization_id, sums in closings.items()
    }
    return _without_zeros(ordered), _without_zeros(cut)


def difference(expected: SumsByOrganization, found: SumsByOrganization) -> str | None:
    """Return the first difference in words, or None if all sums are equal."""
    for organization_id in sorted(expected.keys() | found.keys()):
        wanted, read = expected.get(organization_id), found.get(organization_id)
        if wanted != read:
            return f"organization {organization_id} has {_words(wanted)}, the files {_words(read)}"
    return None


def _without_zeros(sums: SumsByOrganization) -> SumsByOrganization:
    return {name: each for name, each in sums.items() if any(each.sums.values())}


def _words(sums: DaySums | None) -> str:
    if sums is None:
        return "no rows"
    amounts = ", ".join(f"{name} {value}" for name, value in sums.sums.items() if value)
    return f"{sums.rows} rows ({amounts or 'all sums zero'})"
