"""No page has commands that no test runs."""

from pathlib import Path

import pytest

from tests.cli.documents import read, scripts

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("docs", "docs/guides", "docs/runbooks")
    for path in (ROOT / folder).glob("*.md")
)
NOT_FOLLOWED = {"docs/performance.md"}
"""Its commands measure for minutes, on a machine that does nothing else."""
DOCUMENTS = ["README.md", *(page for page in PAGES if page not in NOT_FOLLOWED)]
FOLLOWED = "\n".join(
    path.read_text(encoding="utf-8")
    for path in (ROOT / "tests").rglob("test_*.py")
    if path != Path(__file__)
)
COMMANDS = ("tollhouse ", "curl ", "psql ", "pg_", "kill ", "make ", "apt-get ", "export ")


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if scripts(read(path))])
def test_blocks_of_shell_are_run_by_a_test(document: str) -> None:
    assert f'"{document}"' in FOLLOWED


def unmarked_commands(text: str) -> list[str]:
    """Lines in blocks that are marked as nothing, and so are not run, but look like commands."""
    blocks = [block for block in text.split("```")[1::2] if block.startswith("\n")]
    return [line for block in blocks for line in block.splitlines() if line.startswith(COMMANDS)]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_only_what_prepares_the_machine_is_not_run(document: str) -> None:
    prepares = {
        "make setup",
        'export PATH="$PWD/tollhouse/bin:$PATH"',
        'export PATH="$PWD/.venv/bin:$PATH"',
        "export DATABASE_URL=postgresql://ROLE:PASSWORD@127.0.0.1:5432/tollhouse",
    }

    assert set(unmarked_commands(read(document))) <= prepares
