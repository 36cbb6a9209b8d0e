"""Every rule of the house is shown once to catch what it forbids, and once to let pass."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tools.checks import (
    document,
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
from tools.checks.__main__ import findings
from tools.checks.source import Source, drain, read

ROOT = Path(__file__).parents[2]
MEANT = {"description": "A property."}


def source(text: str, module: str = "api/example") -> Source:
    path = module if module.endswith(".sql") else f"{module}.py"
    return Source.parse(f"src/tollhouse/{path}", dedent(text))


@pytest.mark.guarantee("I11")
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
        "shown = int(pico) / 10**12",
        "share = row['limit_pico'] / 2",
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


@pytest.mark.guarantee("I11")
@pytest.mark.parametrize(
    "module", ["base/money", "ledger/rules", "reports/store", "catalog/prices"]
)
def test_modules_about_money_hold_no_float_under_any_name(module: str) -> None:
    assert len(list(money.check(source("share = part / whole\nhalf = 0.5", module)))) == 2


def test_the_rest_of_the_catalog_may_hold_floats() -> None:
    assert list(money.check(source("temperature_max = 2.0", "catalog/rules"))) == []


@pytest.mark.guarantee("T16")
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
        "COMPOSED",
    ],
)
@pytest.mark.parametrize("runner", sorted(statements.RUNNERS))
def test_sql_that_is_built_is_found(runner: str, statement: str) -> None:
    text = f"""
    LOOSE = "SELECT 1"
    COMPUTED: Final = make()
    COMPOSED: Final = f"SELECT {{LOOSE}}"
    async def get(tx: Transaction, statement: str) -> None:
        await tx.{runner}({statement}, 1)
    """
    assert [finding.line for finding in statements.check(source(text))] == [6]


@pytest.mark.parametrize(
    "statement", ['"SELECT 1"', '"""SELECT\n1"""', "NAMED", "TYPED", "JOINED", "sql"]
)
def test_sql_that_is_a_literal_passes(statement: str) -> None:
    text = (
        'NAMED: Final = "SELECT 1"\n'
        'TYPED: Final[LiteralString] = "SELECT 1"\n'
        'JOINED: Final = f"{NAMED} WHERE true"\n'
        "async def get(tx: Transaction, sql: LiteralString) -> None:\n"
        f"    await tx.fetch_one({statement}, 1)\n"
    )
    assert list(statements.check(source(text))) == []


@pytest.mark.guarantee("T16")
def test_a_stream_of_rows_that_is_built_is_found_and_another_stream_passes() -> None:
    text = """
    async def get(tx: Transaction, statement: str) -> None:
        async for rows in tx.stream(statement, rows_at_once=2):
            pass
        async for rows in tx.stream("SELECT 1", rows_at_once=2):
            pass
        await port.stream(request)
    """
    assert [finding.line for finding in statements.check(source(text))] == [3]


def test_a_literal_parameter_of_one_function_does_not_vouch_for_another() -> None:
    text = """
    async def first(tx: Transaction, sql: LiteralString) -> None:
        await tx.execute(sql)

    async def second(tx: Transaction, sql: str) -> None:
        await tx.execute(sql)
    """
    assert [finding.line for finding in statements.check(source(text))] == [6]


PROJECT = "class Project:\n    organization_id: OrganizationId\n"
QUERY = '\n    return await tx.fetch_one("SELECT 1 FROM projects WHERE id = $1", 1)'


def of_tenants(signature: str, module: str) -> list[int]:
    """Return the lines of findings about a function that reads a tenant's table."""
    one = source(PROJECT + signature.replace(": ...", ":") + QUERY, module)
    return [finding.line for finding in tenancy.check(one, tenancy.tenancy([one]))]


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
@pytest.mark.parametrize("module", ["keys/store", "keys/service"])
def test_a_function_without_its_organization_is_found(signature: str, module: str) -> None:
    assert of_tenants(signature, module) == [3]


@pytest.mark.parametrize(
    "signature",
    [
        "async def get(tx: Transaction, organization_id: OrganizationId) -> None: ...",
        "async def get(tx: Transaction, *, organization_id: OrganizationId) -> None: ...",
        "async def insert(tx: Mutation, project: Project) -> None: ...",
        "async def insert_all(tx: Mutation, projects: list[Project]) -> None: ...",
        "async def find(tx: Transaction) -> None: ...  # all organizations: the directory",
    ],
)
def test_a_function_that_names_its_organization_or_a_reason_passes(signature: str) -> None:
    assert of_tenants(signature, "keys/store") == []


def test_a_mutation_names_its_organization_if_the_function_uses_it() -> None:
    signature = "async def change(tx: Mutation, name: Name): ..."

    assert of_tenants(signature, "keys/store") == [3]
    assert of_tenants(f"{signature}\n    await lock(tx.organization_id)", "keys/store") == []


@pytest.mark.parametrize(
    "text",
    [
        "def get(tx: Transaction): ...",
        "def _project(row: Row) -> Project: ...",
        'async def get(tx: Transaction):\n    await tx.execute("SELECT 1 FROM instances")',
    ],
)
def test_only_functions_with_sql_of_tenants_are_asked_for_an_organization(text: str) -> None:
    instances = source("CREATE TABLE instances (id uuid)", "storage/schema.sql")
    one = source(text, "keys/store")

    assert not [*tenancy.check(one, tenancy.tenancy([one, instances]))]


def test_a_type_carries_its_organization() -> None:
    text = """
    class Project:
        organization_id: OrganizationId

    class Organization:
        id: OrganizationId

    class Name:
        text: str

    Marks = dict[tuple[OrganizationId, KeyId], datetime]
    Names = dict[str, str]
    """
    assert tenancy.carriers([source(text)]) == {"Project", "Organization", "Marks"}


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


@pytest.mark.parametrize("module", ["api/edge", "base/tasks"])
def test_two_modules_are_the_last_resort(module: str) -> None:
    text = "try:\n    work()\nexcept Exception:\n    pass"
    assert list(handlers.check(source(text, module))) == []


@pytest.mark.parametrize("module", ["api/projects", "manage/projects", "admin/projects"])
def test_a_handler_that_changes_something_unasked_is_found(module: str) -> None:
    text = "async with self.pool.mutation(authority) as tx:\n    await act(tx)"
    assert [finding.line for finding in mutations.check(source(text, module))] == [1]


@pytest.mark.parametrize(
    "text",
    [
        "database.mutation(operator.authority(organization_id))",
        "database.mutation(authority)  # caller: its key is read below",
        "mutation(call)",
    ],
)
def test_operators_and_named_callers_may_begin_a_change(text: str) -> None:
    assert list(mutations.check(source(text, "api/projects"))) == []


def test_a_fact_that_no_log_line_shows_is_found() -> None:
    text = """
    FIELDS: Final = (
        'job',
        'count',
    )
    class JsonFormatter(logging.Formatter):
        pass
    """
    formatter = source(text, "observability/log")
    fields = log_fields.written([formatter])
    assert fields == {"job", "count"}

    text = "logger.info('event', extra={'job': 1, 'jobs': 2})"
    assert [finding.line for finding in log_fields.check(source(text), fields)] == [1]
    assert list(log_fields.check(source("logger.info('event', extra={'job': 1})"), fields)) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("connection._writer.close()", ["_writer"]),
        ("from x import A\nclass B(A):\n    def f(self):\n        super()._f()", ["_f"]),
        ("from tollhouse.x import A\nclass B(A):\n    def f(self):\n        super()._f()", []),
        ("self._writer = row._asdict()", []),
        ("connection.__class__", []),
    ],
)
def test_a_private_name_of_another_object_is_found(text: str, names: list[str]) -> None:
    found = [each.message.split()[0] for each in private_names.check([source(text)])]

    assert found == names


def test_a_file_may_have_400_lines_and_no_more() -> None:
    assert list(sizes.check(source("x = 1\n" * 400))) == []
    assert [finding.line for finding in sizes.check(source("x = 1\n" * 401))] == [401]


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_function_may_have_50_lines_and_no_more(keyword: str) -> None:
    head = f"x = 1\n{keyword} long():\n"
    assert list(sizes.check(source(head + "    x = 1\n" * 49))) == []
    assert [finding.line for finding in sizes.check(source(head + "    x = 1\n" * 50))] == [2]


def test_every_check_reads_the_whole_package(tmp_path: Path) -> None:
    package = tmp_path / "src" / "tollhouse" / "keys"
    package.mkdir(parents=True)
    (package / "store.py").write_text(
        "async def get(tx: Transaction, name: Name = 'SELECT 1 FROM projects') -> None:\n"
        "    price = 1.5\n"
        "    try:\n"
        "        await tx.execute(name)\n"
        "    except:\n"
        "        pass\n" + "    x = 1\n" * 400,
        encoding="utf-8",
    )
    found, examined = drain(findings(list(read(tmp_path))))
    found = sorted(each for each in found if each.path.startswith("src/"))
    assert examined["files"] == 1
    assert {finding.path for finding in found} == {"src/tollhouse/keys/store.py"}
    assert [finding.line for finding in found] == [1, 1, 2, 4, 5, 401]


def test_the_command_lists_file_and_line_and_fails(tmp_path: Path) -> None:
    (tmp_path / "src" / "tollhouse" / "api").mkdir(parents=True)
    (tmp_path / "src" / "tollhouse" / "api" / "pay.py").write_text("cost = 0.5\n", encoding="utf-8")
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    (tmp_path / "docs").symlink_to(ROOT / "docs")

    done = subprocess.run(
        [sys.executable, "-m", "tools.checks"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "src/tollhouse/api/pay.py:1: a float literal near money" in done.stdout
    assert "checks files examined 1 places" in done.stdout


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("class Court: ...", "evaluation/example"),
        ("def weigh() -> None: ...", "evaluation/example"),
        ("async def tend() -> None: ...", "limits/example"),
        ("def enter(entrant: str) -> None: ...", "limits/example"),
        ("courtroom = 1", "evaluation/example"),
        ("SIZE = 1", "evaluation/courtroom"),
    ],
)
def test_a_name_that_was_replaced_is_found(text: str, module: str) -> None:
    one = source(text, module)

    assert [finding.line for finding in names.check(one, names.classes([one]))] == [1]


def test_a_class_name_that_exists_twice_is_found_in_both_places() -> None:
    first, second = (
        source("class Place: ...", "api/first"),
        source("class Place: ...", "api/second"),
    )
    defined = names.classes([first, second])

    (found,) = names.check(first, defined)
    assert "api/second" in found.message
    assert len([*names.check(second, defined)]) == 1


def test_a_wire_type_may_have_the_name_of_its_noun() -> None:
    noun = source("class Project: ...", "projects/types")
    wire = source("class Project: ...", "contract/projects")
    defined = names.classes([noun, wire])

    assert not [*names.check(noun, defined), *names.check(wire, defined)]


@pytest.mark.parametrize(
    "text",
    [
        '"""Ask the courtroom."""',
        "# A secret that nobody\n# can read.\nkey = read()",
        'MESSAGE = "The operator pays, whoever "\n"asked."',
        'raise Refused(f"Whoever runs {name} can change it.")',
    ],
)
def test_a_phrase_that_hides_who_acts_is_found(text: str) -> None:
    assert [*phrases.check(source(text, "cli/example"))]


@pytest.mark.parametrize(
    "text", ['account = "nobody"', "courtroom = 1", '"""Return the houses of the city."""']
)
def test_a_name_or_an_honest_word_is_no_phrase(text: str) -> None:
    assert not [*phrases.check(source(text, "cli/example"))]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM accounts WHERE organization_id = $1",
        "SELECT 1 FROM projects p JOIN accounts a ON true",
        "INSERT INTO accounts (organization_id) VALUES ($1)",
        "UPDATE accounts SET credit_pico = 0",
        "DELETE FROM accounts",
    ],
)
def test_a_table_of_another_package_is_found(statement: str) -> None:
    foreign = source(f'await tx.execute("{statement}")', "projects/store")
    own = source(f'await tx.execute("{statement}")', "ledger/store")

    (found,) = tables.check([foreign], {})
    assert "accounts, which belongs to ledger" in found.message
    assert "accounts" not in " ".join(map(str, tables.check([own], {})))


def test_a_named_exception_allows_one_use_and_must_be_needed() -> None:
    reading = source('await tx.fetch_one("SELECT 1 FROM accounts FOR UPDATE")', "projects/store")
    exceptions = {("projects", "accounts", "read"): "shown once"}

    assert not [*tables.check([reading], exceptions)]
    (found,) = tables.check([], exceptions)
    assert "not needed" in found.message


def test_a_table_without_an_owner_is_found() -> None:
    migration = source('run("CREATE TABLE orphans (id uuid)")', "storage/migrations/versions/r1")

    (found,) = tables.check([migration], {})
    assert "orphans" in found.message


def test_first_rows_and_functions_of_the_schema_belong_to_no_package() -> None:
    text = """
    CREATE TABLE reaper_progress (begun_at timestamptz);
    INSERT INTO reaper_progress VALUES (now());
    CREATE FUNCTION spent() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM accounts; $$;
    """

    assert not [*tables.check([source(text, "storage/schema.sql")], {})]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"enum": ["a", "b"]}, "without a type"),
        ({"const": False}, "without a type"),
        ({"type": "array", "items": {"type": "object"}}, "free-form object"),
        ({"type": "object", "properties": {}}, "free-form object"),
        ({"type": "integer", "maximum": 9}, "int64"),
        ({"properties": {"a": {"type": "null", **MEANT}}}, "can only be null"),
        ({"title": "A", "properties": {}}, "it has no description"),
        ({"title": "A", "description": "a", "properties": {"b": {}}}, "property 'b' has no"),
        ({"operationId": "a", "description": "a", "parameters": [{"name": "b"}]}, "'b' has no"),
        ({"operationId": "a"}, "it has no description"),
        (
            {
                "operationId": "a",
                "description": "a",
                "requestBody": {"content": {"application/json": {}}},
            },
            "no example",
        ),
        (
            {
                "properties": {"low": {"default": 1, **MEANT}, "high": MEANT},
                "x-tollhouse-exclusive": ["low", "high"],
            },
            "drop its default",
        ),
    ],
)
def test_a_schema_that_clients_misread_is_found(schema: document.Json, message: str) -> None:
    (found,) = document.check({"components": {"schemas": {"A": schema}}})

    assert message in found.message
    assert "#/components/schemas/A" in found.message


def test_a_schema_that_clients_read_is_no_finding() -> None:
    schema = {
        "title": "A",
        "description": "a",
        "type": "object",
        "properties": {
            "enum": {"type": "string", "enum": ["a", "b"], **MEANT},
            "const": {"type": "object", "additionalProperties": True, **MEANT},
            "title": {"x-tollhouse-default": 1, **MEANT},
        },
        "x-tollhouse-exclusive": ["title", "enum"],
        "example": {"type": "object"},
    }

    assert not [*document.check({"components": {"schemas": {"A": schema}}})]
