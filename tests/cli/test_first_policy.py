"""The guide to the first policy, followed from an empty directory to its end."""

import re

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts

GUIDE = read("docs/guides/first-policy.md")


def test_a_new_reader_gets_from_init_to_a_policy_that_applies(
    newcomer: Operator, fresh_url: str
) -> None:
    init, find_project, create, target, publish, look, *change, stop, go_back, audit = scripts(
        GUIDE
    )
    newcomer.environment["DATABASE_URL"] = fresh_url

    newcomer.bash(init)
    project = newcomer.bash(find_project).stdout.splitlines()[1].split()[0]
    newcomer.environment["PROJECT_ID"] = project
    listed = newcomer.bash(create).stdout.splitlines()[-1]
    policy = listed.split()[0]
    newcomer.environment["POLICY_ID"] = policy

    assert "draft" in listed
    assert project in newcomer.bash(target).stdout
    first = newcomer.bash(publish).stdout
    assert "+Does the text name a person?" in first
    assert re.search("^state +monitoring$", first, re.MULTILINE)
    assert effective(newcomer.bash(look).stdout) == [policy, "1", "request", "monitoring"]

    edit, compare, publish_again = change
    newcomer.bash(edit)
    compared = newcomer.bash(compare).stdout
    assert re.search("^mode +monitoring +enforcing$", compared, re.MULTILINE)
    assert "+Does the text name a person who is alive?" in compared
    assert effective(compared) == [policy, "1", "request", "monitoring"]
    second = newcomer.bash(publish_again).stdout
    assert effective(second) == [policy, "2", "request", "enforcing"]

    stopped = newcomer.bash(stop).stdout
    assert "paused" in stopped
    assert "\nid   name   version" in stopped
    assert re.search("^state +enforcing$", stopped, re.MULTILINE)
    versions = newcomer.bash(go_back).stdout.splitlines()[-3:]
    assert [line.split()[:3] for line in versions] == [
        *(["3", "yes", "monitoring"], ["2", "no", "enforcing"], ["1", "no", "monitoring"])
    ]
    audited = newcomer.bash(audit).stdout
    assert audited.count(f"policy {policy}") == 8


def effective(printed: str) -> list[str]:
    """The last line, which is the only policy that applies."""
    policy, _, _, *rest = printed.splitlines()[-1].split()
    return [policy, *rest[:3]]
