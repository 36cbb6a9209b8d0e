"""Every rule of the house is shown once to catch what it forbids, and once to let pass."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tools.checks import handlers, log_fields, money, mutations, sizes, statements, tenancy
from tools.checks.__main__ import findings
from tools.checks.source import Source

ROOT = Path(__file__).parents[2]


def source(text: str, module: str = "api/example") -> Source:
    return Source.parse(f"src/tollhouse/{module}.py", dedent(text))


@pytest.mark.parametrize(
    "text",
    [
        "amount = 1.5",
        "amount = 1e12",
        "cost = total / 2",
        "total_pico_usd /= 2",
        "share = balance / count",
        "shown = float(credit)",
        "price: float = read()",
        "def pay(amount: float) -> None: ...",
        "def pay(amount=0.5) -> None: ...",
        "def pay(*amounts: float) -> None: ...",
        "def total_cost(rows: Rows) -> float: ...",
        "async def total_cost(rows: Rows) -> float: ...",
        "pay(amount=0.5)",
        "PicoUsd(0.5)",
        "row = {'amount': 0.5}",
        "if account.balance > 0.5: ...",
        "class Price:\n    unit_price: float",
    ],
)
def test_a_float_beside_a_name_of_money_is_found(text: str) -> None:
    assert [finding.line for finding in money.check(source(text))] == [len(text.splitlines())]


@pytest.mark.parametrize(
    "text",
    [
        "amount = 3 // 2",
        "deadline_seconds: float = 1.5",
        "def pay(amount: int, *, deadline_seconds: float = 1.5) -> None: ...",
        "pay(amount=1, deadline_seconds=1.5)",
        "load_balancer = 1.5",
        "credential_age = now / 2",
        "price_list = folder / 'prices.toml'",
        "'''An amount is no 1.5.'''",
    ],
)
def test_what_is_not_about_money_may_be_a_float(text: str) -> None:
    assert list(money.check(source(text))) == []


@pytest.mark.parametrize(
    "module", ["base/money", "ledger/rules", "reports/store", "catalog/prices"]
)
def test_modules_about_money_hold_no_float_under_any_name(module: str) -> None:
    assert len(list(money.check(source("share = part / whole\nhalf = 0.5", module)))) == 2


def test_the_rest_of_the_catalog_may_hold_floats() -> None:
    assert list(money.check(source("temperature_max = 2.0", "catalog/rules"))) == []


@pytest.mark.parametrize(
    "statement",
    [
        'f"SELECT {column}"',
        '"SELECT %s" % column',
        '"SELECT " + column',
        '"SELECT {}".format(column)',
        '" ".join(parts)',
        "statement",
        "OTHER.STATEMENT",
        "LOOSE",
        "COMPUTED",
    ],
)
@pytest.mark.parametrize("runner", sorted(statements.RUNNERS))
def test_sql_that_is_built_is_found(runner: str, statement: str) -> None:
    text = f"""
    LOOSE = "SELECT 1"
    COMPUTED: Final = make()

    async def get(tx: Transaction, statement: str) -> None:
        await tx.{runner}({statement}, 1)
    """
    assert [finding.line for finding in statements.check(source(text))] == [6]


@pytest.mark.parametrize("statement", ['"SELECT 1"', '"""SELECT\n1"""', "NAMED", "TYPED", "sql"])
def test_sql_that_is_a_literal_passes(statement: str) -> None:
    text = (
        'NAMED: Final = "SELECT 1"\n'
        'TYPED: Final[LiteralString] = "SELECT 1"\n'
        "async def get(tx: Transaction, sql: LiteralString) -> None:\n"
        f"    await tx.fetch_one({statement}, 1)\n"
    )
    assert list(statements.check(source(text))) == []


def test_a_literal_parameter_of_one_function_does_not_vouch_for_another() -> None:
    text = """
    async def first(tx: Transaction, sql: LiteralString) -> None:
        await tx.execute(sql)

    async def second(tx: Transaction, sql: str) -> None:
        await tx.execute(sql)
    """
    assert [finding.line for finding in statements.check(source(text))] == [6]


CARRYING = frozenset({"Project"})


@pytest.mark.parametrize(
    "signature",
    [
        "async def get(tx: Transaction) -> None: ...",
        "async def get(tx: Transaction, key_id: KeyId) -> None: ...",
        "async def get(tx: Transaction, organization_id: str) -> None: ...",
        "async def get(tx: Transaction, key_id: KeyId, organization_id: OrganizationId): ...",
        "async def get(tx: Transaction, *, after: OrganizationId | None) -> None: ...",
        "async def get(tx: Transaction, name: Name) -> None: ...  # all organizations:",
    ],
)
def test_a_store_function_without_its_organization_is_found(signature: str) -> None:
    assert len(list(tenancy.check(source(signature, "keys/store"), CARRYING))) == 1


@pytest.mark.parametrize(
    "signature",
    [
        "async def get(tx: Transaction, organization_id: OrganizationId) -> None: ...",
        "async def get(tx: Transaction, *, organization_id: OrganizationId) -> None: ...",
        "async def insert(tx: Mutation, project: Project) -> None: ...",
        "async def insert_all(tx: Mutation, projects: list[Project]) -> None: ...",
        "async def find(tx: Transaction) -> None: ...  # all organizations: the directory",
        "def _project(row: Row) -> Project: ...",
    ],
)
def test_a_store_function_that_names_its_organization_or_a_reason_passes(signature: str) -> None:
    assert list(tenancy.check(source(signature, "keys/store"), CARRYING)) == []


def test_only_stores_are_asked_for_an_organization() -> None:
    assert (
        list(tenancy.check(source("def get(tx: Transaction): ...", "keys/service"), CARRYING)) == []
    )


def test_a_class_carries_its_organization_by_a_field() -> None:
    text = """
    class Project:
        organization_id: OrganizationId

    class Organization:
        id: OrganizationId

    class Name:
        text: str
    """
    assert tenancy.carriers([source(text)]) == {"Project", "Organization"}


@pytest.mark.parametrize(
    "handler",
    [
        "except:\n    pass",
        "except Exception:\n    raise",
        "except Exception as error:\n    log(error)",
        "except (OSError, Exception):\n    pass",
        "except BaseException:\n    clean_up()",
        "except BaseException as error:\n    raise Other from error",
    ],
)
def test_a_handler_that_catches_all_is_found(handler: str) -> None:
    text = f"try:\n    work()\n{handler}"
    assert [finding.line for finding in handlers.check(source(text))] == [3]


@pytest.mark.parametrize("call", ["suppress(Exception)", "contextlib.suppress(BaseException)"])
def test_suppressing_all_is_found(call: str) -> None:
    assert len(list(handlers.check(source(f"with {call}:\n    work()")))) == 1


@pytest.mark.parametrize(
    "handler",
    [
        "except OSError:\n    pass",
        "except (OSError, PolicyNotFound):\n    pass",
        "except BaseException:\n    clean_up()\n    raise",
    ],
)
def test_a_handler_that_names_its_failure_or_lets_it_go_on_passes(handler: str) -> None:
    text = f"with suppress(OSError):\n    pass\ntry:\n    work()\n{handler}"
    assert list(handlers.check(source(text))) == []


@pytest.mark.parametrize("module", ["api/errors", "base/tasks"])
def test_two_modules_are_the_last_resort(module: str) -> None:
    text = "try:\n    work()\nexcept Exception:\n    pass"
    assert list(handlers.check(source(text, module))) == []


@pytest.mark.parametrize("module", ["api/projects", "manage/projects"])
def test_a_handler_that_changes_something_unasked_is_found(module: str) -> None:
    text = "async with call.house.database.mutation(authority) as tx:\n    await act(tx)"
    assert [finding.line for finding in mutations.check(source(text, module))] == [1]


@pytest.mark.parametrize("module", ["api/mutations", "cli/project", "settings"])
def test_only_handlers_have_a_caller_to_ask_for(module: str) -> None:
    assert list(mutations.check(source("database.mutation(authority)", module))) == []
    assert list(mutations.check(source("mutation(call)", "api/projects"))) == []


def test_a_fact_that_no_log_line_shows_is_found() -> None:
    formatter = source("FIELDS: Final = (\n    'job',\n    'count',\n)", "observability/log")
    fields = log_fields.written([formatter])
    assert fields == {"job", "count"}

    text = "logger.info('event', extra={'job': 1, 'jobs': 2})"
    assert [finding.line for finding in log_fields.check(source(text), fields)] == [1]
    assert list(log_fields.check(source("logger.info('event', extra={'job': 1})"), fields)) == []


def test_a_file_may_have_500_lines_and_no_more() -> None:
    assert list(sizes.check(source("x = 1\n" * 500))) == []
    assert [finding.line for finding in sizes.check(source("x = 1\n" * 501))] == [501]


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_function_may_have_70_lines_and_no_more(keyword: str) -> None:
    head = f"x = 1\n{keyword} long():\n"
    assert list(sizes.check(source(head + "    x = 1\n" * 69))) == []
    assert [finding.line for finding in sizes.check(source(head + "    x = 1\n" * 70))] == [2]


def test_every_check_reads_the_whole_package(tmp_path: Path) -> None:
    room = tmp_path / "src" / "tollhouse" / "keys"
    room.mkdir(parents=True)
    (room / "store.py").write_text(
        "async def get(tx: Transaction, name: Name) -> None:\n"
        "    price = 1.5\n"
        "    try:\n"
        "        await tx.execute(name)\n"
        "    except:\n"
        "        pass\n" + "    x = 1\n" * 500,
        encoding="utf-8",
    )
    found = sorted(findings(tmp_path))
    assert {finding.path for finding in found} == {"src/tollhouse/keys/store.py"}
    assert [finding.line for finding in found] == [1, 1, 2, 4, 5, 501]


def test_the_command_lists_file_and_line_and_fails(tmp_path: Path) -> None:
    (tmp_path / "src" / "tollhouse" / "api").mkdir(parents=True)
    (tmp_path / "src" / "tollhouse" / "api" / "pay.py").write_text("cost = 0.5\n", encoding="utf-8")
    (tmp_path / "tools").symlink_to(ROOT / "tools")

    done = subprocess.run(
        [sys.executable, "-m", "tools.checks"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stdout.startswith("src/tollhouse/api/pay.py:1: a float literal near money")
