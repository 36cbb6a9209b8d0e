"""`tollhouse credits` and `tollhouse caps`, and the guide to both, followed to its end."""

import json
from uuid import uuid4

import pytest

from tests.cli.commands import Operator, new_project, refusal
from tests.cli.documents import read, scripts
from tests.cli.test_readme import json_documents
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.errors import CAP_ERRORS, CreditExhausted, ProjectCapReached
from tollhouse.ledger.types import Period


@pytest.fixture(scope="module")
def project(operator: Operator) -> str:
    return new_project(operator)


@pytest.mark.usefixtures("project")
def test_credit_is_granted_corrected_and_explained(operator: Operator) -> None:
    given = operator.json("credits", "grant", "12.5", "--reason", "a pilot")
    correction = ("--kind", "correction", "--reason", "typo")
    taken = json.loads(
        operator.run("credits", "grant", *correction, "--json", "--", "-2.25").stdout
    )

    shown = operator.json("credits", "show")
    listed = operator.json("credits", "history")

    assert (given["kind"], given["amount"]) == ("promotional", {"value": "12.5", "currency": "usd"})
    assert taken["amount"]["value"] == "-2.25"
    assert taken["actor"] == {"type": "operator", "id": None, "name": None}
    assert {name: shown[name]["value"] for name in ("granted", "used", "available")} == {
        "granted": "10.25",
        "used": "0",
        "available": "10.25",
    }
    assert listed["data"] == [taken, given]
    assert "a pilot" in operator.run("credits", "history").stdout


def test_what_is_no_credit_is_refused(operator: Operator, project: str) -> None:
    config = ("--config", str(operator.settings_path))

    taking = ("credits", "grant", "--reason", "x", "--", "-1")
    assert operator.failure_code(*taking) == "invalid_value"
    nothing = ("credits", "grant", "--kind", "correction", "--reason", "x", "--json", "--", "-0")
    assert "must not be zero" in operator.run(*nothing, exit_code=2).error["message"]
    assert "--reasn" in refusal(*config, "credits", "grant", "5", "--reasn", "x")
    assert "amount of US dollars" in refusal(*config, "credits", "grant", "1e3", "--reason", "x")
    assert "--reason" in refusal(*config, "credits", "grant", "1")
    refused = operator.run(
        *("caps", "set", "1", "--period", "month", "--project", project, "--key", project),
        exit_code=2,
    )
    assert "not both" in refused.stderr


def test_a_negative_cap_is_a_usage_error(operator: Operator) -> None:
    refused = operator.run("caps", "set", "--period", "month", "--json", "--", "-5", exit_code=2)

    assert refused.error["code"] == "usage"
    assert "must not be negative" in refused.error["message"]


def test_a_cap_is_set_shown_and_cleared(operator: Operator, project: str) -> None:
    place = ("--project", project, "--period", "lifetime")

    made = operator.json("caps", "set", "5", *place, "--alert-percent", "50")

    assert (made["scope"], made["project_id"], made["alert_percent"]) == ("project", project, 50)
    assert operator.json("caps", "show")["data"] == [made]
    assert made["id"] in operator.run("caps", "show").stdout
    assert operator.json("caps", "clear", *place)["deleted"] is True
    assert operator.failure_code("caps", "clear", *place) == "spending_limit_not_found"
    unknown = ("caps", "set", "5", "--period", "month", "--key", str(uuid4()))
    assert operator.failure_code(*unknown) == "api_key_not_found"


def test_the_guide_can_be_followed_to_its_end(patient: Operator) -> None:
    grant, correct, set_caps, clear, pay = scripts(read("docs/guides/credits-and-caps.md"))
    project = new_project(patient)
    key = patient.created("key", "create", "--project", project, "batch jobs")
    admin = patient.created("admin-key", "create", "finance")
    patient.environment.update({"PROJECT_ID": project, "KEY_ID": key["id"]})

    assert "25 usd" in patient.bash(grant).stdout
    assert "granted twice" in patient.bash(correct).stdout
    caps = patient.bash(set_caps).stdout
    cleared = patient.bash(clear).stdout
    patient.environment["TOLLHOUSE_LEDGER__IS_SANDBOX"] = "true"
    with patient.serving() as server:
        address = server.announced.split("is ready on ")[1].split()[0].strip(",.")
        paid = patient.bash(
            pay, {"TOLLHOUSE_URL": address, "TOLLHOUSE_ADMIN_KEY": admin["value"]}
        ).stdout

    assert f"project:{project}:month" in caps
    assert f"api_key:{key['id']}:lifetime" in caps
    assert f"project:{project}:month" in cleared
    payment, balance = json_documents(paid)
    assert payment["kind"] == "test_payment"
    assert balance["available"] == {"value": "32.5", "currency": "usd"}


def test_the_guide_explains_every_402_in_its_own_words() -> None:
    guide = read("docs/guides/credits-and-caps.md")
    needed, available, held = (PicoUsd(milli_usd * 10**9) for milli_usd in (12, 4, 10))
    shown = ProjectCapReached(needed=needed, available=available, held=held, period=Period.DAY)

    assert f"> {shown}\n" in guide
    assert shown.retry_after_seconds is not None
    for refusal_class in (CreditExhausted, *CAP_ERRORS.values()):
        assert f"| [`{refusal_class.code}`]" in guide
