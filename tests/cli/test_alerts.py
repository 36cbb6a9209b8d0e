"""`tollhouse alerts`, the guide to it followed to its end, and its receiver in Python."""

import time

import pytest

from tests.cli.commands import Operator, new_project, refusal
from tests.cli.documents import blocks, read, scripts
from tests.cli.test_readme import json_documents
from tollhouse.alerts import rules

GUIDE = "docs/guides/alerts.md"
URL = "https://receiver.example/alerts"


@pytest.fixture(scope="module", autouse=True)
def organization(operator: Operator) -> None:
    new_project(operator)


def test_a_subscription_is_made_listed_tested_rotated_and_deleted(operator: Operator) -> None:
    thresholds = ("--cap-percent", "80", "--credit-below", "12.5", "--backend-down")

    made = operator.json("alerts", "create", "the team", "--url", URL, *thresholds)
    listed = operator.json("alerts", "list")["data"]
    sent = operator.json("alerts", "test", made["id"])
    shown = operator.json("alerts", "deliveries")["data"]
    rotated = operator.json("alerts", "rotate-secret", made["id"])
    edited = operator.json("alerts", "edit", made["id"], "others", "--url", URL, *thresholds[2:4])

    assert made["secret"].startswith("whsec_")
    assert (made["cap_percents"], made["credit_below"]["value"]) == ([80], "12.5")
    assert [each["backend_down"] for each in listed if each["id"] == made["id"]] == [True]
    assert (sent["status"], sent["type"]) == ("pending", "test")
    assert sent["id"] in [each["id"] for each in shown]
    assert rotated["secret"] != made["secret"]
    assert (edited["name"], edited["backend_down"]) == ("others", False)
    assert (edited["cap_percents"], edited["credit_below"]["value"]) == ([], "12.5")
    assert operator.json("alerts", "retry", made["id"])["id"] == made["id"]
    assert operator.json("alerts", "delete", made["id"], "--yes")["deleted"] is True
    assert operator.failure_code("alerts", "test", made["id"]) == "alert_subscription_not_found"


def test_what_cannot_be_delivered_is_refused(operator: Operator) -> None:
    config = ("--config", str(operator.settings_path), "alerts", "create", "the team")

    assert "at least one threshold" in refusal(*config, "--url", URL)
    assert "--url or --email" in refusal(*config, "--cap-percent", "80")
    wanted = ("alerts", "create", "the team", "--cap-percent", "80")
    assert operator.failure_code(*wanted, "--url", "http://10.0.0.1/") == "invalid_value"
    assert operator.failure_code(*wanted, "--email", "a@b.example") == "invalid_value"
    assert "such as a@b.example" in refusal(*config, "--email", "a@b.example\nBcc: c@d.example")


def test_the_guide_can_be_followed_to_its_end(patient: Operator) -> None:
    subscribe, manage, tested, rotate, own = scripts(read(GUIDE))
    new_project(patient)
    admin = patient.created("admin-key", "create", "platform")

    subscribed = patient.bash(subscribe).stdout
    with patient.serving() as service:
        address = service.announced.split("is ready on ")[1].split()[0].strip(",.")
        answered = patient.bash(
            manage, {"TOLLHOUSE_URL": address, "TOLLHOUSE_ADMIN_KEY": admin["value"]}
        ).stdout
    [made] = json_documents(answered)
    patient.environment["SUBSCRIPTION_ID"] = made["id"]
    deliveries = patient.bash(tested).stdout
    rotated = patient.bash(rotate).stdout

    assert "whsec_" in subscribed
    assert made["cap_percents"] == [80, 95]
    assert "This is a test alert." in deliveries
    assert "whsec_" in rotated
    assert "backend_down" in patient.bash(own).stdout


def test_the_receiver_of_the_guide_accepts_what_is_genuine_alone() -> None:
    (block,) = blocks(read(GUIDE), "python")
    program: dict[str, object] = {}
    exec(block, program)  # noqa: S102 - the program of the guide
    verify = program["verify"]
    assert callable(verify)
    new, old, other = (rules.secret_text(bytes([number]) * 32) for number in range(3))
    now, body = int(time.time()), b'{"type": "test"}'

    def headers(secrets: list[str], sent_at: int = now) -> dict[str, str]:
        signature = rules.signatures(secrets, "an-id", sent_at, body)
        return {
            "webhook-id": "an-id",
            "webhook-timestamp": str(sent_at),
            "webhook-signature": signature,
        }

    for secret in (new, old):
        verify(headers([new, old]), body, secret)
    for wrong, content, secret in (
        (headers([new, old]), body, other),
        (headers([new]), body + b" ", new),
        ({**headers([new]), "webhook-id": "another"}, body, new),
        ({**headers([new]), "webhook-timestamp": str(now - 1)}, body, new),
        (headers([new], now - 301), body, new),
        (headers([]), body, new),
    ):
        with pytest.raises(ValueError, match=r"too old|not signed"):
            verify(wrong, content, secret)
