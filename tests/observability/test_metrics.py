"""Counting in one process, and adding up what several processes have counted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tollhouse.observability import metrics, registry
from tollhouse.observability.metrics import ActivityLoss, JobOutcome, LookupOutcome

REPOSITORY = Path(__file__).parents[2]
REQUESTS = 'tollhouse_http_requests_total{operation="listModels",outcome="%s",status="%s"}'

WORK = """
from tollhouse.observability import buffered_metrics, metrics
metrics.request_answered("listModels", status=200, outcome="succeeded", seconds=0.02)
metrics.request_answered("listModels", status=200, outcome="succeeded", seconds=0.2)
metrics.longest_stall({stall})
metrics.database_connections_in_use({connections})
buffered_metrics.write_all()
import os; print(os.getpid())
"""


def _work(directory: Path, *, stall: float, connections: int) -> int:
    """Count in a process of its own, as a worker does; its ID."""
    done = subprocess.run(
        [sys.executable, "-c", WORK.format(stall=stall, connections=connections)],
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY / "src"),
            "PROMETHEUS_MULTIPROC_DIR": str(directory),
        },
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout)


def _value(page: bytes, series: str) -> float:
    lines = (line.rpartition(" ") for line in page.decode().splitlines())
    return next((float(value) for name, _, value in lines if name == series), 0.0)


def _counted(series: str) -> float:
    return _value(registry.exposition(None), series)


def test_a_request_is_counted_and_timed_by_operation() -> None:
    requests = REQUESTS % ("client_error", "404")
    fast = 'tollhouse_http_request_seconds_bucket{le="0.005",operation="listModels"}'
    slow = 'tollhouse_http_request_seconds_bucket{le="0.01",operation="listModels"}'
    before = _counted(requests), _counted(fast), _counted(slow)

    metrics.request_answered("listModels", status=404, outcome="client_error", seconds=0.007)

    after = _counted(requests), _counted(fast), _counted(slow)
    assert [late - early for early, late in zip(before, after, strict=True)] == [1, 0, 1]


def test_a_request_without_a_route_is_counted_under_one_name() -> None:
    series = 'tollhouse_http_requests_total{operation="none",outcome="client_error",status="404"}'
    before = _counted(series)

    metrics.request_answered(None, status=404, outcome="client_error", seconds=0.001)

    assert _counted(series) - before == 1


@pytest.mark.parametrize("outcome", list(LookupOutcome))
def test_every_outcome_of_a_lookup_has_a_series(outcome: LookupOutcome) -> None:
    series = f'tollhouse_key_lookups_total{{outcome="{outcome}"}}'
    before = _counted(series)

    metrics.key_looked_up(outcome)

    assert _counted(series) - before == 1


def test_batches_bodies_jobs_and_gauges_are_shown() -> None:
    names = (
        "tollhouse_key_lookup_batches_total",
        "tollhouse_key_lookup_batch_size_sum",
        "tollhouse_body_bytes_sum",
        'tollhouse_job_runs_total{job="sweep",outcome="failed"}',
    )
    before = [_counted(name) for name in names]

    metrics.key_lookup_batch_sent(7)
    metrics.body_read(600)
    metrics.job_ran("sweep", JobOutcome.FAILED)
    metrics.database_connections_in_use(4)
    metrics.longest_stall(0.25)

    grown = [_counted(name) - early for name, early in zip(names, before, strict=True)]
    assert grown == [1, 7, 600, 1]
    assert _counted("tollhouse_database_pool_in_use") == 4
    assert _counted("tollhouse_event_loop_stall_seconds") == 0.25


@pytest.mark.parametrize("loss", list(ActivityLoss))
def test_every_way_to_lose_a_record_has_a_series(loss: ActivityLoss) -> None:
    names = (
        f'tollhouse_activity_dropped_total{{reason="{loss}"}}',
        "tollhouse_activity_written_total",
    )
    before = [_counted(name) for name in names]

    metrics.activity_dropped(3, loss)
    metrics.activity_written(5)

    assert [_counted(name) - early for name, early in zip(names, before, strict=True)] == [3, 5]


def test_traffic_is_counted_by_what_refused_it_and_where() -> None:
    names = (
        'tollhouse_limit_refusals_total{kind="tokens",scope="project"}',
        "tollhouse_limits_redis_seconds_count",
    )
    before = [_counted(name) for name in names]

    metrics.traffic_refused("tokens", "project")
    metrics.redis_answered(0.004)
    metrics.limits_fallback(is_on=True)
    alone = _counted("tollhouse_limits_fallback")
    metrics.limits_fallback(is_on=False)

    assert [_counted(name) - early for name, early in zip(names, before, strict=True)] == [1, 1]
    assert (alone, _counted("tollhouse_limits_fallback")) == (1, 0)


def test_workers_are_added_up(tmp_path: Path) -> None:
    _work(tmp_path, stall=0.1, connections=3)
    _work(tmp_path, stall=0.4, connections=5)

    page = registry.exposition(tmp_path)

    assert _value(page, REQUESTS % ("succeeded", "200")) == 4
    assert _value(page, "tollhouse_event_loop_stall_seconds") == 0.4
    assert _value(page, "tollhouse_database_pool_in_use") == 8


def test_a_dead_worker_keeps_its_counts_and_loses_its_connections(tmp_path: Path) -> None:
    dead = _work(tmp_path, stall=0.4, connections=3)
    _work(tmp_path, stall=0.1, connections=5)

    registry.fold_dead_worker(tmp_path, dead)

    page = registry.exposition(tmp_path)
    seconds = 'tollhouse_http_request_seconds_bucket{le="0.025",operation="listModels"}'
    assert _value(page, REQUESTS % ("succeeded", "200")) == 4
    assert _value(page, seconds) == 2
    assert _value(page, "tollhouse_event_loop_stall_seconds") == 0.4
    assert _value(page, "tollhouse_database_pool_in_use") == 5


def test_files_do_not_pile_up_with_the_dead(tmp_path: Path) -> None:
    for _ in range(3):
        registry.fold_dead_worker(tmp_path, _work(tmp_path, stall=0.1, connections=1))

    page = registry.exposition(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "counter_0.db",
        "gauge_max_0.db",
        "histogram_0.db",
    ]
    assert _value(page, REQUESTS % ("succeeded", "200")) == 6
