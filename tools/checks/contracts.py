"""How many modules each import contract of `.importlinter` is about."""

import configparser
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path

from tools.checks.source import Source

SECTION = "importlinter:contract:"
SUBJECTS = ("source_modules", "protected_modules", "ancestors")


def examined(root: Path, sources: Iterable[Source]) -> dict[str, int]:
    """Return the modules that each contract names: by themselves, or with the package around."""
    parser = configparser.ConfigParser()
    parser.read(root / ".importlinter", encoding="utf-8")
    modules = [
        [*accumulate(("tollhouse", *source.module), "{}.{}".format)]
        for source in sources
        if not source.is_sql
    ]
    return {
        section.removeprefix(SECTION): _count(list(_expressions(parser[section])), modules)
        for section in parser.sections()
        if section.startswith(SECTION)
    }


def _expressions(contract: configparser.SectionProxy) -> Iterator[str]:
    """Yield the expressions for modules whose imports a contract looks at."""
    for option in SUBJECTS:
        yield from contract.get(option, "").split()
    layers = re.findall(r"\w+", contract.get("layers", ""))
    for container in contract.get("containers", "").split():
        yield from (f"{container}.{layer}" for layer in layers)


def _count(expressions: list[str], modules: list[list[str]]) -> int:
    patterns = [
        re.escape(each).replace(r"\*\*", r"\w+(?:\.\w+)*").replace(r"\*", r"\w+")
        for each in expressions
    ]
    matches = re.compile("|".join(patterns)).fullmatch
    return sum(any(map(matches, ancestry)) for ancestry in modules)
