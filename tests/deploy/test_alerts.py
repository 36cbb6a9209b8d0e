"""Every rule is silent for a gateway that has just started, and fires for what it is about.

The series are those of a real gateway after its start, so that also a first burst is a rise.
"""

import asyncio
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml
from prometheus_client.parser import text_string_to_metric_families as families
from prometheus_client.samples import Sample

from tests.support import catalogs
from tests.support.processes import running_service
from tollhouse.settings import Settings
from tools.reference.metrics import declared

RULES = Path(__file__).parents[2] / "deploy/alerts.yaml"
TARGET = {"instance": "host", "job": "tollhouse"}
TIMEOUT_SECONDS = 60.0
UP = "up"
METRIC = re.compile(r"\btollhouse_\w+")
LOOKED = {("tollhouse_database_up", 1.0), ("tollhouse_model_candidates", 1.0)}
STEPS = 120
QUIET = "10m"
LOUD = "50m"
GROWS = "0x20 0+5x100"
BURST = "0x20 9x100"
ZERO, ONE = "1x20 0x100", "0x20 1x100"
PER_INSTANCE = {"instance": "host"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """What series do from the tenth minute on, and the labels of the alert about it."""

    series: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    at: str = LOUD


def fault(status: str, values: str) -> Case:
    labels = f'operation="listModels",outcome="failed",status="{status}"'
    return Case(series={f"tollhouse_http_requests_total{{{labels}}}": values})


def one(series: str, values: str, at: str = LOUD, **labels: str) -> Case:
    return Case(series={series: values}, labels=labels, at=at)


CASES = {
    "TollhouseFails": fault("500", GROWS),
    "TollhouseUnavailable": fault("200", GROWS),
    "TollhouseTargetAbsent": one(UP, ZERO, **TARGET),
    "TollhouseDatabaseDown": one("tollhouse_database_up", ZERO),
    "TollhouseDatabaseReadOnly": one("tollhouse_database_is_read_only", ONE),
    "TollhouseModelUnserved": one(
        'tollhouse_model_candidates{model="example/model-a"}', ZERO, model="example/model-a"
    ),
    "TollhouseJudgeFails": one(
        'tollhouse_policy_decisions_total{direction="request",mode="enforcing",outcome="failed"}',
        GROWS,
    ),
    "TollhouseWorkersDie": one("tollhouse_worker_deaths_total", ONE, **PER_INSTANCE),
    "TollhouseReloadFailed": one('tollhouse_last_reload{outcome="refused"}', ONE, **PER_INSTANCE),
    "TollhouseConfigurationsDiffer": one(
        'tollhouse_configuration_info{sha256="another",version="0"}', "1x120", job="tollhouse"
    ),
    "TollhouseAlertsUndelivered": one(
        'tollhouse_alert_attempts_total{destination="webhook",state="failed"}', BURST
    ),
    "TollhouseSlow": one("tollhouse_event_loop_stall_seconds", "0x20 0.7x100"),
    "TollhouseSheds": one("tollhouse_requests_shed_total", GROWS),
    "TollhousePaysItself": one(
        'tollhouse_operator_pays_pico_usd_total{account="unknown"}', "0x20 500e12x100"
    ),
    "TollhouseUnsettled": one("tollhouse_unsettled_holds", "0x20 101x100"),
    "TollhouseResolutionsSetAside": one("tollhouse_resolutions_set_aside_total", ONE),
    "TollhouseCountsAlone": one("tollhouse_limits_fallback", ONE),
    "TollhouseReplicasAvoided": one(
        'tollhouse_backend_replicas_avoided{backend="engine",reason="failing"}',
        ONE,
        backend="engine",
    ),
    "TollhouseJobsFail": one(
        'tollhouse_job_runs_total{job="alert-delivery",outcome="failed"}',
        BURST,
        job="alert-delivery",
    ),
    "TollhouseForgetsRequests": one(
        'tollhouse_activity_dropped_total{reason="no_room"}', "0x20 20000x100"
    ),
    "TollhouseLedgerDiffers": one("tollhouse_ledger_differing_organizations", ONE),
    "TollhouseLedgerNotVerified": one(
        "tollhouse_ledger_oldest_verification_seconds", "0x20 86401x100"
    ),
    "TollhouseDatabaseIsStandby": one("tollhouse_database_is_standby", ONE),
    "TollhouseHistoryLost": one(
        'tollhouse_database_timeline{system="7"}', "3x20 2x100", system="7", **TARGET
    ),
    "TollhouseStandbysMissing": Case(
        series={
            'tollhouse_database_synchronous_standbys{state="required"}': "1x120",
            'tollhouse_database_synchronous_standbys{state="connected"}': ZERO,
        },
        labels=TARGET,
    ),
    "TollhouseNoSpareStandby": Case(
        series={
            'tollhouse_database_synchronous_standbys{state="required"}': "1x120",
            'tollhouse_database_synchronous_standbys{state="connected"}': "2x20 1x100",
        },
        labels=TARGET,
    ),
    "TollhouseCommitsUnprotected": one('tollhouse_database_synchronous_commit{level="off"}', ONE),
    "TollhousePoolerDropsSettings": one("tollhouse_database_settings_missing", ONE),
    "TollhouseClockDiffers": one("tollhouse_database_clock_difference_seconds", "0x20 -2x100"),
    "TollhouseDiskFills": Case(
        series={
            'tollhouse_database_disk_bytes{space="free"}': "50x20 14x100",
            'tollhouse_database_disk_bytes{space="total"}': "100x120",
        }
    ),
    "TollhouseSnapshotHeld": one("tollhouse_database_oldest_snapshot_seconds", "0x20 3601x100"),
    "TollhousePartitionsMissing": one(
        'tollhouse_partition_days_ahead{table="requests"}', "7x20 2x100"
    ),
    "TollhouseReplicaNotRead": one(
        'tollhouse_database_replica_reads_total{server="primary"}', "0x20 0+30x100"
    ),
}


async def test_rules_are_silent_at_a_start_and_fire_for_what_they_are_about(
    settings: Settings, tmp_path: Path
) -> None:
    offering = msgspec.structs.replace(settings, backends=catalogs.BACKENDS, models=catalogs.MODELS)
    async with running_service(offering, tmp_path) as service:
        # A worker has looked at its database and counted its models by then.
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not values(samples := born(await service.metrics())) >= LOOKED:  # noqa: ASYNC110 - a page has no event
                await asyncio.sleep(0.1)
        await service.stop()
    assert missing(samples) == []

    (tmp_path / "tests.yaml").write_text(json.dumps(plan(samples)), encoding="utf-8")
    tried = await asyncio.to_thread(promtool, tmp_path / "tests.yaml")

    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_every_rule_has_a_case() -> None:
    assert {rule["alert"] for rule in rules()} == set(CASES)


def promtool(tests: Path) -> "subprocess.CompletedProcess[str]":
    command = ["promtool", "test", "rules", str(tests)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return group["rules"]


def born(page: str) -> list[Sample]:
    """The series of a page that rules can ask for."""
    return [
        sample
        for family in families(page)
        for sample in family.samples
        if sample.name.startswith("tollhouse_") and "le" not in sample.labels
    ]


def values(samples: Sequence[Sample]) -> set[tuple[str, float]]:
    return {(each.name, each.value) for each in samples}


def missing(samples: Sequence[Sample]) -> list[str]:
    """Series of the cases that a gateway does not have: a counter from its start, or ever."""
    known = {name: (kind, labels) for name, kind, labels, _ in declared()}
    at_start = {(each.name, frozenset(each.labels.items())) for each in samples}
    return [
        series
        for case in CASES.values()
        for series in case.series
        if series != UP
        and (
            (named(series).name, frozenset(named(series).labels.items())) not in at_start
            if known[named(series).name][0] == "counter"
            else set(named(series).labels) != set(re.findall(r"\w+", known[named(series).name][1]))
        )
    ]


def named(series: str) -> Sample:
    (family,) = families(f"{series} 0\n")
    return family.samples[0]


def plan(samples: Sequence[Sample]) -> dict[str, Any]:
    """What promtool is to try: silence of all rules, and then each of them alone."""
    constant = {text(each): f"{each.value:g}x{STEPS}" for each in samples}
    constant[text(named(UP))] = f"1x{STEPS}"
    silence: list[dict[str, Any]] = [
        {"alertname": rule["alert"], "eval_time": QUIET, "exp_alerts": []} for rule in rules()
    ]
    tests: list[dict[str, Any]] = [
        {"interval": "30s", "input_series": listed(constant), "alert_rule_test": silence}
    ]
    for rule in rules():
        case = CASES[rule["alert"]]
        changed = {text(named(series)): values for series, values in case.series.items()}
        expected = {
            "exp_labels": {**rule["labels"], **case.labels},
            "exp_annotations": rule["annotations"],
        }
        asked = {"alertname": rule["alert"], "eval_time": case.at, "exp_alerts": [expected]}
        tests.append(
            {
                "interval": "30s",
                "input_series": listed(asked_for(rule, constant) | changed),
                "alert_rule_test": [asked],
            }
        )
    return {"rule_files": [str(RULES)], "evaluation_interval": "5m", "tests": tests}


def asked_for(rule: Mapping[str, Any], series: Mapping[str, str]) -> dict[str, str]:
    """The series of the metrics in a rule."""
    metrics = set(METRIC.findall(rule["expr"]))
    return {name: values for name, values in series.items() if name.partition("{")[0] in metrics}


def text(sample: Sample) -> str:
    """The series as Prometheus stores it: with the target that it was read from."""
    labels = ",".join(
        f"{name}={json.dumps(value)}" for name, value in sorted({**TARGET, **sample.labels}.items())
    )
    return f"{sample.name}{{{labels}}}"


def listed(series: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": values} for name, values in series.items()]
