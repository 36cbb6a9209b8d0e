"""Mutants change what a test should notice, and are named the same in every run."""

import ast
from itertools import islice
from pathlib import Path

import pytest

from tools.mutants import generating, known, planted, targets
from tools.mutants.mutant import Mutant

PATH = "src/tollhouse/ledger/rules.py"
STATES = {"tollhouse.ledger.rules": {"State": ("OPEN", "PAUSED", "CLOSED")}}


@pytest.fixture(scope="module")
def all_mutants() -> list[Mutant]:
    return generating.mutants(targets.ROOT)


def mutants(text: str) -> list[Mutant]:
    return list(generating.of_file(PATH, text.encode(), {**STATES}))


def changes(text: str) -> set[str]:
    return {mutant.after for mutant in mutants(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a >= b", {"x = a > b"}),
        ("x = a is not b", {"x = a is b"}),
        ("x = a not in b", {"x = a in b"}),
        ("x = a + b", {"x = a - b"}),
        ("x += a", {"x -= a"}),
        ("x = a + 'text'", set[str]()),
        ("x = a and b", {"x = a or b", "x = True and b", "x = a and True"}),
        ("x = not a", {"x = a"}),
        ("def f():\n    x = 60", {"x = 61", "x = 59"}),
        ("x = 60", set[str]()),
        ("x = True", {"x = False"}),
        ("x = a if b else c", {"x = a if (not (b)) else c"}),
        ("x = min(a, b)", {"x = max(a, b)"}),
        ("x = State.PAUSED", {"x = State.CLOSED"}),
        ("x = State.CLOSED", {"x = State.OPEN"}),
        ("self.x = a", {"pass"}),
        ("raise Refused(a)", {"pass"}),
        ("settle(a)", {"pass"}),
        ("def f() -> int:\n    return a", {"return None"}),
        ("def f() -> bool:\n    return a", {"return (not (a))"}),
        ("async def f():\n    await settle(a)", {"pass"}),
    ],
)
def test_python_is_changed_at_one_place(text: str, expected: set[str]) -> None:
    assert changes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "logger.info('x', extra={'count': 1})",
        "metrics.requests(1)",
        "assert a < b, 1",
        '"""At most 3."""',
        "x: Literal[1]",
        "@dataclass(frozen=True)\nclass A:\n    pass",
        "class A(Struct, frozen=True):\n    pass",
        "if TYPE_CHECKING:\n    x = 1",
        "x = f'{1} of {2}'",
    ],
)
def test_what_no_test_should_notice_is_left_alone(text: str) -> None:
    assert changes(text) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1 FROM a WHERE b = $1", "SELECT 1 FROM a WHERE (b = $1) IS NOT NULL"),
        ("SELECT 1 FROM a WHERE b = $1", "SELECT 1 FROM a WHERE b <> $1"),
        ("SELECT 1 FROM a WHERE b < $1", "SELECT 1 FROM a WHERE b <= $1"),
        ("UPDATE a SET b = b + $1", "UPDATE a SET b = b - $1"),
        ("SELECT greatest(a, b) FROM c", "SELECT least(a, b) FROM c"),
        ("SELECT a FROM b ORDER BY a DESC", "SELECT a FROM b ORDER BY a"),
        ("SELECT a FROM b WHERE c AND d", "SELECT a FROM b WHERE c OR d"),
        ("SELECT a FROM b WHERE c IS NULL", "SELECT a FROM b WHERE c IS NOT NULL"),
        ("SELECT a FROM b WHERE NOT c", "SELECT a FROM b WHERE c"),
        ("SELECT a FROM b FOR UPDATE", "SELECT a FROM b"),
        ("SELECT a FROM b LEFT JOIN c ON true", "SELECT a FROM b JOIN c ON true"),
        ("SELECT a * 80 FROM b", "SELECT a * 81 FROM b"),
    ],
)
def test_sql_is_changed_at_one_place(text: str, expected: str) -> None:
    assert f'x = """{expected}"""' in changes(f'x = """{text}"""')


def test_a_file_of_sql_is_changed_where_its_functions_are() -> None:
    text = b"""
    -- Names; of all.
    CREATE TABLE a (b int CHECK (b > 1));
    CREATE FUNCTION c() RETURNS int LANGUAGE sql AS $$ SELECT b; SELECT 1 FROM a WHERE b < 1 $$;
    """
    found = list(generating.of_file("src/tollhouse/storage/schema/a.sql", text, {}))

    assert {mutant.function for mutant in found} == {"c"}
    assert any("WHERE b <= 1 $$;" in mutant.after for mutant in found)


def test_text_that_is_no_sql_is_left_alone() -> None:
    assert changes('x = """Take a + b or c."""') == set()


def test_names_stay_when_lines_are_added_above() -> None:
    text = "def f(a, b):\n    return a < b\n"

    before = [mutant.identity for mutant in mutants(text)]
    moved = [mutant.identity for mutant in mutants(f"import ast\n\n\n{text}")]

    assert before == moved


def test_equal_changes_in_one_function_have_names_of_their_own() -> None:
    found = mutants("def f(a, b):\n    a += b\n    a += b\n")

    assert len({mutant.identity for mutant in found}) == len(found) == 2


@pytest.mark.nightly
def test_a_sample_is_repeated_by_its_seed_and_takes_from_every_group(
    all_mutants: list[Mutant],
) -> None:
    first, again, other = (
        [mutant.identity for mutant in islice(generating.sample(all_mutants, seed), 60)]
        for seed in (1, 1, 2)
    )

    assert first == again != other
    groups = [targets.group(name.partition(" ")[0]) for name in first]
    assert {groups.count(group) for group in set(groups)} == {5}


@pytest.mark.nightly
def test_a_sample_keeps_its_order_when_a_mutant_is_gone(all_mutants: list[Mutant]) -> None:
    of_keys = [mutant for mutant in all_mutants if targets.group(mutant.path) == "keys"]
    drawn = list(generating.sample(of_keys, 1))

    assert list(generating.sample([*drawn[:9], *drawn[10:]], 1)) == [*drawn[:9], *drawn[10:]]


@pytest.mark.nightly
def test_mutants_are_python_and_have_one_name_each(all_mutants: list[Mutant]) -> None:
    assert len({mutant.identity for mutant in all_mutants}) == len(all_mutants)
    for mutant in islice(generating.sample(all_mutants, 3), 60):
        if mutant.path.endswith(".py"):
            ast.parse(mutant.apply((targets.ROOT / mutant.path).read_bytes()))


def test_a_test_that_is_gone_is_not_asked_again(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_b(): ...\n", encoding="utf-8")

    assert known.exists(tmp_path, "test_a.py::test_b[1::2]")
    assert not known.exists(tmp_path, "test_a.py::test_c")
    assert not known.exists(tmp_path, "test_b.py::test_b")


def test_every_planted_bug_applies_and_names_tests_that_exist() -> None:
    for mutant in planted.mutants():
        named = planted.tests_of(mutant)

        assert named
        assert all(known.exists(targets.ROOT, name) for name in named)
