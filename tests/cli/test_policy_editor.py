"""`tollhouse policy` in an editor, which here is a small program."""

from pathlib import Path

import pytest

from tests.cli.commands import Operator, at_a_terminal, new_project

RULE = "Does the text name a person?"
ENFORCE = 'sed -i s/monitoring\\"$/enforcing\\"/'
FILL_IN = "sed -i -e 's/^name = .*/name = \"No names\"/' -e '/^rule/a Does it name\\na person?'"


@pytest.fixture(scope="module")
def project(operator: Operator) -> str:
    return new_project(operator)


@pytest.fixture
def policy(operator: Operator, project: str) -> str:
    assert project
    return operator.json("policy", "create", "No names", "--rule", RULE)["id"]


@pytest.fixture
def kept(operator: Operator, tmp_path: Path) -> Path:
    """The directory in which texts are edited."""
    operator.environment["TMPDIR"] = str(tmp_path)
    return tmp_path


def program(directory: Path, script: str) -> str:
    """An editor that does what a script says with the file `$1`."""
    path = directory / "editor.sh"
    path.write_text(f"set -eu\n{script}\n", encoding="utf-8")
    return f"sh '{path}'"


def only_text(directory: Path) -> Path:
    (path,) = directory.glob("tollhouse-*.toml")
    return path


def test_a_new_policy_is_written_in_a_form(operator: Operator, project: str, kept: Path) -> None:
    assert project
    created = operator.run("policy", "create", "--mode", "enforcing", EDITOR=FILL_IN).stdout

    shown = operator.json("policy", "show", created.split()[1])
    assert shown["name"] == "No names"
    assert shown["draft"]["rule"] == "Does it name\na person?"
    assert shown["draft"]["mode"] == "enforcing"
    assert list(kept.iterdir()) == []


def test_an_edit_starts_from_the_draft_and_sends_the_revision_that_was_shown(
    operator: Operator, policy: str, kept: Path
) -> None:
    form = kept / "form"
    editor = program(kept, f'cp "$1" {form}; chmod a+r {form}; {ENFORCE} "$1"')

    edited = operator.run("policy", "edit", policy, "--json", EDITOR=editor)

    assert f"{policy}, revision 1" in form.read_text(encoding="utf-8")
    assert f'rule = """\n{RULE}\n"""' in form.read_text(encoding="utf-8")
    assert edited.stderr == ""
    shown = operator.json("policy", "show", policy)
    assert shown["draft"]["mode"] == "enforcing"
    assert shown["draft"]["rule"] == RULE
    assert shown["revision"] == 2


def test_a_threshold_that_is_taken_out_is_the_default_again(
    operator: Operator, policy: str, kept: Path
) -> None:
    assert kept
    operator.json("policy", "edit", policy, "--match-threshold-basis-points", "700")

    operator.run("policy", "edit", policy, EDITOR="sed -i /^match_threshold/d")

    draft = operator.json("policy", "show", policy)["draft"]
    assert draft["match_threshold_basis_points"] is None


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_who_was_overtaken_is_told_so_and_loses_no_text(
    operator: Operator, policy: str, kept: Path, form: tuple[str, ...]
) -> None:
    editor = program(
        kept, f'tollhouse policy edit {policy} --description theirs >&2\n{ENFORCE} "$1"'
    )

    refused = operator.run("policy", "edit", policy, *form, EDITOR=editor, exit_code=1)

    text = only_text(kept)
    assert "Revision 1 is not the latest, which is 2." in refused.stderr
    assert f"Your text is kept in {text}." in refused.stderr
    assert 'mode = "enforcing"' in text.read_text(encoding="utf-8")
    assert text.stat().st_mode & 0o777 == 0o600
    shown = operator.json("policy", "show", policy)
    assert shown["description"] == "theirs"
    assert shown["draft"]["mode"] == "monitoring"


def test_a_text_that_cannot_be_used_is_kept(operator: Operator, policy: str, kept: Path) -> None:
    refused = operator.run(
        *("policy", "edit", policy, "--json"), EDITOR="sed -i s/person./person/", exit_code=2
    )

    assert refused.error["code"] == "invalid_value"
    assert str(only_text(kept)) in refused.error["message"]


def test_at_a_terminal_it_can_be_edited_again(operator: Operator, policy: str, kept: Path) -> None:
    editor = program(
        kept,
        """
        if grep -q 'person?' "$1"; then sed -i 's/person?/person/' "$1"
        else sed -i 's/person$/place?/' "$1"; fi
        """,
    )

    edited = at_a_terminal(operator, ["policy", "edit", policy], "y", EDITOR=editor)

    assert edited.exit_code == 0, edited
    assert "Invalid 'rule'" in edited.stderr
    assert operator.json("policy", "show", policy)["draft"]["rule"] == "Does the text name a place?"
    assert list(kept.glob("*.toml")) == []


def test_who_does_not_want_to_go_on_keeps_the_text(
    operator: Operator, policy: str, kept: Path
) -> None:
    edited = at_a_terminal(
        operator, ["policy", "edit", policy], "n", EDITOR="sed -i s/person./person/"
    )

    assert edited.exit_code == 2
    assert str(only_text(kept)) in edited.stderr


@pytest.mark.parametrize("verb", ["create", "edit"])
def test_a_text_left_alone_does_nothing(
    operator: Operator, policy: str, kept: Path, verb: str
) -> None:
    arguments = {"create": ("create", "n"), "edit": ("edit", policy)}[verb]
    before = operator.json("policy", "list")

    stopped = operator.run("policy", *arguments, EDITOR="true", exit_code=1)

    assert stopped.stderr == "Error: Aborted.\n"
    assert operator.json("policy", "list") == before
    assert list(kept.iterdir()) == []


@pytest.mark.parametrize("editor", ["false", "no-such-editor"])
def test_an_editor_that_fails_leaves_nothing_behind(
    operator: Operator, policy: str, kept: Path, editor: str
) -> None:
    failed = operator.run("policy", "edit", policy, "--json", EDITOR=editor, exit_code=1)

    assert failed.error["code"] == "editing_failed"
    assert "EDITOR" in failed.error["message"]
    assert list(kept.iterdir()) == []
