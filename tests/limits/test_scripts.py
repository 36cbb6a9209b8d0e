"""What Redis decides is what the rules decide, at every instant and after every history."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.limits.gates import token_cost
from tests.limits.histories import (
    INSTANT_US,
    LEASE_MS,
    LEASE_US,
    Model,
    Scripts,
    Step,
    pauses,
    steps,
)
from tests.support.redis_server import RedisServer
from tollhouse.limits import rules, scripts
from tollhouse.limits.commands import MEMBER_WIDTH
from tollhouse.limits.types import ConcurrencySlot, LimitRequest, LimitScope

EXAMPLES = 60
NO_EXPIRY = -1
SLOT = ConcurrencySlot(scope=LimitScope.KEY, key="slots", limit=1)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(st.tuples(pauses, steps), max_size=40))
def test_redis_decides_as_the_rules_do(
    redis_server: RedisServer, history: list[tuple[int, Step]]
) -> None:
    with redis_server.client() as client:
        client.flushall()
        model, real = Model(), Scripts(client)
        for duration_us, step in history:
            model.now_us += duration_us
            real.move_to(model.now_us)

            assert step.happen_to(real) == step.happen_to(model)


def member(name: str) -> str:
    return name.ljust(MEMBER_WIDTH, "-")


def test_nothing_stays_for_ever(redis_server: RedisServer) -> None:
    request = rules.request_cost(LimitScope.KEY, "requests", 7)
    token = token_cost(LimitScope.KEY, "tokens", 7, 1)
    with redis_server.client() as client:
        real = Scripts(client, before=scripts.SERVER_CLOCK)
        real.count(LimitRequest(costs=(request,), slots=(SLOT,), member=member("m")))
        real.leave(LimitRequest(costs=()), ((token, 5_000_000),))

        left_ms = {key: client.pttl(key) for key in ("requests", "tokens", "slots")}

    assert NO_EXPIRY not in left_ms.values()
    assert left_ms["requests"] <= 8_572
    assert left_ms["tokens"] <= 5_000
    assert left_ms["slots"] <= LEASE_MS


def test_a_slot_that_nobody_renews_is_free_after_its_lease(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        real = Scripts(client)
        real.move_to(INSTANT_US)
        killed = real.count(LimitRequest(costs=(), slots=(SLOT,), member=member("killed")))
        real.move_to(INSTANT_US + LEASE_US - 1)
        early = real.count(LimitRequest(costs=(), slots=(SLOT,), member=member("waiting")))
        real.move_to(INSTANT_US + LEASE_US)
        waiting = real.count(LimitRequest(costs=(), slots=(SLOT,), member=member("waiting")))

    assert [decision.refused_by for decision in (killed, early, waiting)] == [None, SLOT, None]
