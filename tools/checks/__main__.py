"""`python -m tools.checks`: lists every broken rule of the package and exits with 1.

A check that finds nothing may have looked at nothing: `examined.json` says how many places each
check, import contract and group of mutants examined when it was written. Fewer is a finding.
`python -m tools.checks --write` writes present numbers; a commit that lowers one says what went.
"""

import gc
import sys
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path

from tools.checks import (
    calls,
    contracts,
    document,
    examined,
    handlers,
    log_fields,
    money,
    mutations,
    names,
    phrases,
    private_names,
    sizes,
    statements,
    tables,
    tenancy,
)
from tools.checks.source import Finding, Source, drain, read
from tools.mutants import targets

ROOT = Path(__file__).parents[2]


def findings(sources: Sequence[Source]) -> Generator[Finding, None, Counter[str]]:
    """What every check has to say about a package. Returns how many places each examined."""
    tenants = tenancy.tenancy(sources)
    fields = log_fields.written(sources)
    classes = names.classes(sources)
    counts = Counter[str](files=len(sources))
    for source in sources:
        counts["money"] += yield from money.check(source)
        counts["statements"] += yield from statements.check(source)
        counts["tenancy"] += yield from tenancy.check(source, tenants)
        counts["handlers"] += yield from handlers.check(source)
        counts["mutations"] += yield from mutations.check(source)
        counts["log_fields"] += yield from log_fields.check(source, fields)
        counts["sizes"] += yield from sizes.check(source)
        counts["names"] += yield from names.check(source, classes)
        counts["phrases"] += yield from phrases.check(source)
    counts["tables"] += yield from tables.check(sources)
    yield from private_names.check(sources)
    return counts


def _all(root: Path) -> Generator[Finding, None, examined.Counts]:
    sources = list(read(root))
    checks = yield from findings(sources)
    checks["document"] = yield from document.check(document.read(root))
    return {
        "checks": checks,
        "sql": calls.examined(sources),
        "contracts": contracts.examined(root, sources),
        "mutants": targets.examined(sources),
    }


def main() -> int:
    """Print the findings in the order of the files, and what was examined."""
    gc.disable()  # All trees stay until the end.
    found, counts = drain(_all(ROOT))
    if "--write" in sys.argv[1:]:
        examined.write(ROOT, counts)
    found += examined.check(ROOT, counts)
    for finding in sorted(found):
        print(finding)
    for line in examined.lines(counts):
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
