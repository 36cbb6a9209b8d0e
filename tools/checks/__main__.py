"""`python -m tools.checks`: lists every broken rule of the package and exits with 1."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tools.checks import (
    document,
    handlers,
    log_fields,
    money,
    mutations,
    names,
    phrases,
    sizes,
    statements,
    tables,
    tenancy,
)
from tools.checks.source import Finding, read

ROOT = Path(__file__).parents[2]


def findings(root: Path) -> Iterator[Finding]:
    """What every check has to say about the package and its interface below `root`."""
    sources = list(read(root))
    carrying = tenancy.carriers(sources)
    fields = log_fields.written(sources)
    classes = names.classes(sources)
    for source in sources:
        yield from money.check(source)
        yield from statements.check(source)
        yield from tenancy.check(source, carrying)
        yield from handlers.check(source)
        yield from mutations.check(source)
        yield from log_fields.check(source, fields)
        yield from sizes.check(source)
        yield from names.check(source, classes)
        yield from phrases.check(source)
    yield from tables.check(sources)
    yield from document.check(document.read(root))


def main() -> int:
    """Print the findings in the order of the files."""
    found = sorted(findings(ROOT))
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
