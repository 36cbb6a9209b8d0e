"""After which failures of a backend another model may answer."""

import pytest

from tollhouse.backends.errors import (
    BackendBroke,
    BackendBusy,
    BackendDown,
    BackendError,
    BackendFailed,
    BackendHungUp,
    BackendMalformed,
    BackendRejected,
    BackendTimedOut,
    BackendUnauthorized,
    BackendUnreachable,
    NoReplica,
)
from tollhouse.inference.prepared_request import may_fall_back

# The failure, and whether another model may answer: after a backend that bills only for answers,
# and after one that may bill without.
FAILURES: list[tuple[BackendError, bool, bool]] = [
    (BackendRejected("no", replica="r"), False, False),
    (BackendUnauthorized(replica="r"), True, True),
    (BackendUnreachable(replica="r"), True, True),
    (BackendBusy(replica="r"), True, True),
    (NoReplica(), True, True),
    (BackendFailed(replica="r"), True, False),
    (BackendDown(replica="r"), True, False),
    (BackendHungUp(replica="r"), True, False),
    (BackendMalformed(replica="r"), True, False),
    (BackendBroke(replica="r"), True, False),
    (BackendTimedOut(replica="r"), True, False),
]


@pytest.mark.parametrize(("failure", "if_free", "if_billed"), FAILURES)
def test_another_model_answers_unless_the_call_is_the_callers_mistake_or_may_be_billed(
    failure: BackendError, *, if_free: bool, if_billed: bool
) -> None:
    assert may_fall_back(failure, bills_without_answer=False) is if_free
    assert may_fall_back(failure, bills_without_answer=True) is if_billed


def test_every_failure_is_in_the_table() -> None:
    def below(kind: type[BackendError]) -> set[type[BackendError]]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    assert {type(failure) for failure, _, _ in FAILURES} == below(BackendError) - {BackendError}
