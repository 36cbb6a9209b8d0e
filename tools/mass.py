"""`python -m tools.mass`: what the tree weighs; exits with 1 if a number is above `mass.json`.

Numbers of a package may rise by what another one loses: code moves. The tests of a guarantee are
what may not fall. `--lower` writes better numbers down, never worse ones. For another rise a person
writes `"raised": {"tests lines": {"to": 113000, "paid_by": "the user who needs it"}}`.
"""

import ast
import gc
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from tools.checks import sql
from tools.checks.source import SUFFIXES as SOURCE_SUFFIXES
from tools.checks.source import Source
from tools.mutants import targets
from tools.reference import guarantees

ROOT: Final = Path(__file__).parents[1]
RECORD: Final = ROOT / "tools" / "mass.json"
PACKAGE: Final = "src/tollhouse"
SUFFIXES: Final = {
    PACKAGE: {".py", ".sql", ".lua"},
    "tests": {".py", ".sql"},
    "docs": {".md"},
    "bench": {".py"},
    "tools": {".py", ".sql"},
    "console/src": {".ts", ".tsx", ".css"},
}
MEASURES: Final = ("files", "lines", "code", "nodes")
"""Code is what is left without blank lines, comments and docstrings. Nodes are those of the syntax
tree, and the tokens of what is not Python: a line can be made longer, a node cannot.
"""
TERMS: Final = {
    "cached_input_tokens": re.compile(r"\bcached_input_tokens\b"),
    "allowed_models": re.compile(r"\ballowed_models\b"),
    "match_threshold_basis_points": re.compile(r"\bmatch_threshold_basis_points\b"),
    "api_key as a scope": re.compile(r"[\"']api_key[\"']"),
}
PUBLIC: Final = re.compile(
    r"tollhouse(\.(app|base|contract|settings|storage\.database|testing)(\..*)?)?"
)
"""What a test may import without knowing how the gateway is made."""
PROOFS: Final = "tests of "
BLOCK: Final = 8
_WITH_STATEMENTS: Final = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match),
    *(ast.ExceptHandler, ast.match_case),
)
_TOKEN: Final = re.compile(r"\w+|[^\s\w]")
_COMMENT: Final = {
    "py": re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE),
    "sql": re.compile(r"--[^\n]*"),
    "ts": re.compile(r"/\*.*?\*/|^[ \t]*//[^\n]*", re.DOTALL | re.MULTILINE),
}
_COMMENT["tsx"] = _COMMENT["css"] = _COMMENT["ts"]

Numbers = dict[str, int]


def measure() -> Numbers:
    """Return all numbers of the tree by their names."""
    found = Counter[str]()
    paths = _paths()
    for path in paths:
        area = next((each for each in SUFFIXES if path.is_relative_to(ROOT / each)), "")
        if path.suffix not in SUFFIXES.get(area, ()):
            continue
        weight = _weigh(path)
        found.update({f"{area} {name}": weight[name] for name in MEASURES})
        if area == PACKAGE:
            below = path.relative_to(ROOT / area).parts
            package = below[0] if len(below) > 1 else "*"
            found.update({f"{area}/{package} {name}": weight[name] for name in MEASURES})
    sources = [
        _source(path)
        for path in paths
        if path.is_relative_to(ROOT / PACKAGE) and path.suffix in SOURCE_SUFFIXES
    ]
    for name, term in TERMS.items():
        found[f"files with {name}"] = sum(term.search(each.text) is not None for each in sources)
    blocks = Counter(block for source in sources for block in _blocks(source))
    found[f"equal blocks of {BLOCK} statements or lines of SQL"] = blocks.total() - len(blocks)
    tests = [
        path
        for path in paths
        if path.is_relative_to(ROOT / "tests")
        and path.name.startswith("test_")
        and path.suffix == ".py"
    ]
    found["test files that import internals"] = sum(map(_imports_internals, tests))
    for name, proofs in guarantees.marked(ROOT / "tests").items():
        found[f"{PROOFS}{name}"] = len(proofs)
    return dict(sorted(found.items()))


def _paths() -> list[Path]:
    """Return the files that git tracks or would: what a build leaves behind weighs nothing."""
    listed = targets.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [path for name in listed.split("\0") if (path := ROOT / name).is_file()]


def worse(now: Numbers, bounds: Numbers) -> list[str]:
    """Return the names of the numbers that are worse than they may be."""
    found = [
        name
        for name in sorted({*now, *bounds})
        if (_is_below if name.startswith(PROOFS) else _is_above)(now, bounds, name)
    ]
    return [
        name for name in found if not (name.startswith(f"{PACKAGE}/") and _whole(name) not in found)
    ]


def lower(now: Numbers, bounds: Numbers) -> Numbers:
    """Return the bounds with each number that is better, and those of packages after a move."""
    found = worse(now, bounds)
    kept = {name: bounds[name] for name in found if name in bounds}
    return {name: number for name, number in now.items() if name not in found} | kept


def bounds_of(record: dict[str, Any]) -> Numbers:
    """Return the numbers of a record, with those that somebody pays for."""
    raised = {name: each["to"] for name, each in record["raised"].items() if each["paid_by"]}
    return record["numbers"] | raised


def read() -> dict[str, Any]:
    """Return the record: `numbers`, those `raised`, and the bounds of a request's `path`."""
    return json.loads(RECORD.read_text("utf-8"))


def _is_above(now: Numbers, bounds: Numbers, name: str) -> bool:
    return now.get(name, 0) > bounds.get(name, 0)


def _is_below(now: Numbers, bounds: Numbers, name: str) -> bool:
    return now.get(name, 0) < bounds.get(name, 0)


def _whole(name: str) -> str:
    return f"{PACKAGE} {name.rpartition(' ')[2]}"


def _weigh(path: Path) -> Numbers:
    text = path.read_text("utf-8")
    comment = _COMMENT.get(path.suffix[1:])
    code = comment.sub("", text) if comment else text
    lines = [*map(str.strip, code.splitlines())]
    weight = {"files": 1, "lines": len(text.splitlines())}
    if path.suffix != ".py":
        return weight | {"code": sum(map(bool, lines)), "nodes": len(_TOKEN.findall(code))}
    nodes = 0
    for node in _source(path).nodes:
        nodes += 1
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines[node.lineno - 1 : node.end_lineno] = [""] * _height(node)
            case ast.Constant(value=str(value)) if "\n" in value or sql.BEGINS.match(value):
                nodes += len(_TOKEN.findall(value))
            case _:
                pass
    return weight | {"code": sum(map(bool, lines)), "nodes": nodes}


def _height(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _blocks(source: Source) -> Iterator[int]:
    """Yield each run of statements in a function, without names, and each of lines of a text."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements = list(_statements(node))
            if len(statements) >= BLOCK:
                yield from _runs([_shape(each) for each in statements])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            lines = node.value.strip().splitlines()
            yield from _runs([hash(" ".join(line.split())) for line in lines])


def _runs(found: list[int]) -> Iterator[int]:
    for start in range(len(found) - BLOCK + 1):
        yield hash(tuple(found[start : start + BLOCK]))


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements below a node in their order, without functions inside of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, _WITH_STATEMENTS):
            yield from _statements(child)


def _shape(node: ast.AST) -> int:
    """Return a number that is equal for nodes that differ in names and nested statements."""
    parts = (_shape(each) for each in ast.iter_child_nodes(node) if not isinstance(each, ast.stmt))
    return hash((type(node), *parts))


def _imports_internals(path: Path) -> bool:
    return any(PUBLIC.fullmatch(name) is None for name in _imported(_source(path)))


def _imported(source: Source) -> Iterator[str]:
    for node in source.nodes:
        names: list[str] = []
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(module)):
                names = [f"{module}.{alias.name}" for alias in node.names]
            case _:
                pass
        yield from (name for name in names if name.split(".")[0] == "tollhouse")


@cache
def _source(path: Path) -> Source:
    return Source.parse(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))


def main() -> int:
    """Print all numbers, and return 1 if one is worse than it may be."""
    gc.disable()  # All trees stay until the end.
    record = read()
    now = measure()
    if "--lower" in sys.argv[1:]:
        record["numbers"] = lower(now, record["numbers"])
        unpaid = worse(now, record["numbers"])
        record["raised"] = {
            name: record["raised"][name] for name in unpaid if name in record["raised"]
        }
        RECORD.write_text(f"{json.dumps(record, indent=2)}\n", encoding="utf-8")
    if "--quiet" not in sys.argv[1:]:
        print(*(f"{name:50} {number:11,}" for name, number in now.items()), sep="\n")
    bounds = bounds_of(record)
    found = worse(now, bounds)
    for name in found:
        print(f"{name}: {now.get(name, 0):,}, but the bound is {bounds.get(name, 0):,}")
    print(f"{len(found)} of {len(now)} numbers are worse than tools/mass.json says")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
