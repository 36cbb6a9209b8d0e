"""`tollhouse audit verify`, and the guide to it."""

import asyncio
import json

import pytest

from tests.cli.commands import Operator, execute
from tests.cli.documents import read, scripts


def tamper(url: str, statement: str) -> None:
    asyncio.run(execute(url, f"SET session_replication_role = replica; {statement}"))


@pytest.mark.guarantee("T40")
def test_the_guide_can_be_followed_to_its_end(patient: Operator, database_url: str) -> None:
    keep, compare = scripts(read("docs/guides/verifying-the-audit-log.md"))
    patient.run("org", "create", "Example Ltd")
    patient.run("project", "create", "search")

    assert patient.bash(keep).stdout == (
        "Verified 1 organization. The chain of 2 audit rows is whole.\n"
    )
    assert "is whole" in patient.bash(compare).stdout
    # The chain and its head, as if they never were.
    tamper(database_url, "DELETE FROM audit_chain; DELETE FROM audit_heads")
    assert "inserted" in patient.run("audit", "verify", exit_code=1).stdout
    found = patient.run("audit", "verify", "--heads", "heads.json", exit_code=1)
    assert "truncated" in found.stdout


@pytest.mark.guarantee("T40")
def test_the_first_wrong_row_of_each_organization_is_shown(
    patient: Operator, database_url: str
) -> None:
    for name in ("first", "second", "third"):
        patient.run("org", "create", name)
    first, second, third = (org["id"] for org in patient.json("org", "list")["data"])
    for organization in (first, second):
        patient.run("project", "create", "search", "--org", organization)
    sound = patient.json("audit", "verify")
    assert sound.pop("heads") == [
        {"organization_id": each, "number": number, "sha256": head_of(patient, each)}
        for each, number in ((first, 2), (second, 2), (third, 1))
    ]
    assert sound == {
        "object": "audit.verification",
        "sound": True,
        "organizations": 3,
        "rows": 5,
        "data": [],
    }

    rows_of_second = f"organization_id = '{second}'"
    tamper(database_url, f"UPDATE audit_log SET action = 'x' WHERE {rows_of_second}")  # noqa: S608 - our own
    found = patient.json("audit", "verify", exit_code=1)
    (fault,) = found["data"]
    assert (fault["organization_id"], fault["fault"], fault["number"]) == (second, "changed", 1)
    assert {head["organization_id"] for head in found["heads"]} == {first, third}
    assert fault["audit_id"] in patient.run("audit", "verify", exit_code=1).stdout
    assert patient.json("audit", "verify", "--org", first)["sound"] is True
    assert patient.json("audit", "verify", "--org", second, exit_code=1)["data"] == [fault]


def head_of(operator: Operator, organization: str) -> str:
    (head,) = operator.json("audit", "verify", "--org", organization)["heads"]
    return head["sha256"]


@pytest.mark.guarantee("T40")
def test_an_organization_that_only_the_heads_know_is_missing(patient: Operator) -> None:
    head = {"organization_id": "01890a5d-ac96-774b-bcce-b302099a8057", "number": 1, "sha256": "00"}
    (patient.directory / "heads.json").write_text(json.dumps({"heads": [head]}))

    found = patient.json("audit", "verify", "--heads", "heads.json", exit_code=1)

    (fault,) = found["data"]
    assert fault == {
        "organization_id": head["organization_id"],
        "fault": "truncated",
        "number": 1,
        "audit_id": None,
    }


@pytest.mark.guarantee("T40")
@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"heads": [{"organization_id": "x", "number": 1, "sha256": "0"}]}']
)
def test_a_file_that_has_no_heads_is_refused(patient: Operator, text: str) -> None:
    (patient.directory / "heads.json").write_text(text)

    refused = patient.run("audit", "verify", "--heads", "heads.json", exit_code=2)

    assert "is not the output of `tollhouse audit verify --json`" in refused.stderr
