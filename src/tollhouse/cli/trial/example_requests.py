"""Requests that a new trial sends through its gateway, so that every page has something to show.

They reach the scripted engine only. Among them are a match of each policy, a failure of each
party and a request without a final cost.
"""

import http.client
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tollhouse.base.ids import PolicyId, policy_id_text

TIMEOUT_SECONDS: Final = 30.0
MODEL: Final = "test"
BILLED_MODEL: Final = "test-billed"
PATH: Final = "/v1/chat/completions"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleRequest:
    """One chat request, sent by the project with this number. `fields` join the body."""

    content: str
    project: int = 0
    model: str = MODEL
    fields: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def body(self) -> bytes:
        """The body of the request."""
        message = {"role": "user", "content": self.content}
        asked = {"model": self.model, "max_tokens": 60, "messages": [message]}
        return json.dumps(asked | self.fields).encode()


def requests(
    *, unknown_policy: PolicyId, withholding_policy: PolicyId
) -> tuple[ExampleRequest, ...]:
    """Return all example requests.

    The demonstration judge cannot decide `unknown_policy`; `withholding_policy` judges answers.
    """
    return (
        ExampleRequest(content="Write a headline for our autumn sale.", project=1),
        ExampleRequest(content="Which sizes does this jacket have?", fields={"stream": True}),
        ExampleRequest(content="Translate: Where is my parcel?"),
        ExampleRequest(content="My new password is sunflower7, please keep it."),
        ExampleRequest(content="Send the invoice to anna@example.com."),
        ExampleRequest(content="Charge my card 4111 1111 1111 1111."),
        ExampleRequest(content="Sum up this page.", fields={"max_tokens": "many"}),
        ExampleRequest(content="Sum up this page.", model="no-such-model", project=1),
        ExampleRequest(content=json.dumps({"script": {"status": 500}}), project=1),
        ExampleRequest(
            content="May I take both pills?",
            fields={"policy_ids": [policy_id_text(unknown_policy)]},
        ),
        ExampleRequest(
            content=json.dumps({"script": {"text": "Ask anna@example.com."}}),
            fields={"policy_ids": [policy_id_text(withholding_policy)], "stream": True},
        ),
        ExampleRequest(
            content=json.dumps({"script": {"cut_after": 0}}),
            model=BILLED_MODEL,
        ),
    )


def send(host: str, port: int, keys: Sequence[str], asked: Iterable[ExampleRequest]) -> list[int]:
    """Send each request with its project's key. Return the statuses of the answers.

    The status is 0 if there was none: an example that fails must not stop the start of a trial.
    """
    return [_send(host, port, keys[one.project], one) for one in asked]


def _send(host: str, port: int, key: str, one: ExampleRequest) -> int:
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        connection.request("POST", PATH, one.body, headers)
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
    return answer.status
