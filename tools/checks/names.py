"""A class name stands for one thing, and names that were replaced do not come back."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tools.checks.source import Findings, Source

SHARED = "contract"
"""A wire type may have the name of the noun that it shows."""
RETIRED = frozenset(
    {
        *("Agenda", "Allowance", "Ask", "Asking", "Asks", "Beliefs", "Bench", "Broadcast"),
        *("Checkpoints", "Court", "Courtroom", "Culprit", "Desk", "Draw", "EngineJudge"),
        *("Entrant", "Examination", "Gathered", "Hearing", "HeldSource", "Lane", "Matter"),
        *("Offer", "Offers", "Pass", "Patience", "Policing", "RedisLine", "Rendering", "Said"),
        *("Seal", "Seals", "Sheet", "Standing", "Surface", "Terms", "Variants", "Watcher"),
        *("court_of", "courtroom", "courtroom_of", "entrant", "lay_out", "tend", "weigh"),
    }
)
RETIRED_MODULES = frozenset(
    {
        *("agenda", "allowance", "asking", "asks", "beliefs", "checkpoints", "court", "courtroom"),
        *("courts", "examinations", "gathering", "hearing", "holding", "laying_out", "line"),
        *("offers", "policing", "seals", "surface", "tightening", "watching"),
    }
)
_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.arg | ast.Name
TWICE = "class {name} is also in {places}: a class name stands for one thing"
OLD = "{name} was replaced: docs/glossary.md has the word"


def classes(sources: Iterable[Source]) -> Mapping[str, list[str]]:
    """Return the modules that define each class name, outside of wire types."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for source in sources:
        if source.module[0] != SHARED:
            for node in source.nodes:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append("/".join(source.module))
    return found


def check(source: Source, defined: Mapping[str, list[str]]) -> Findings:
    """Find class names that are defined twice, and names that were replaced."""
    if source.module[-1] in RETIRED_MODULES:
        yield source.finding(source.tree, OLD.format(name=f"module {source.module[-1]}"))
    examined = 0
    for node in source.nodes:
        if isinstance(node, _Definition):
            examined += isinstance(node, ast.ClassDef)
            if _defined(node) in RETIRED:
                yield source.finding(node, OLD.format(name=_defined(node)))
        if isinstance(node, ast.ClassDef) and source.module[0] != SHARED:
            others = [place for place in defined[node.name] if place != "/".join(source.module)]
            if others:
                yield source.finding(node, TWICE.format(name=node.name, places=", ".join(others)))
    return examined


def _defined(node: _Definition) -> str | None:
    """Return the name that a node gives to something."""
    match node:
        case ast.arg(arg=name):
            return name
        case ast.Name(id=name, ctx=context):
            return name if isinstance(context, ast.Store) else None
        case _:
            return node.name
