"""The files that operators copy: of the right form, and true to the program."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]
import pytest
import yaml

from tollhouse.settings import ServerSettings
from tools.reference.metrics import declared

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = [
    pytest.param(document, id=f"{path.name} {document['kind']}")
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
METRIC = re.compile(r"\btollhouse_\w+")
KNOWN = {name for name, *_ in declared()}
HISTOGRAMS = {name for name, kind, *_ in declared() if kind == "histogram"}
DRAIN = ServerSettings().drain_seconds


@pytest.mark.parametrize("document", MANIFESTS)
def test_kubernetes_knows_the_manifests(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_a_manifest_with_an_unknown_field_would_be_refused() -> None:
    broken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"por": 1}}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", ["alerts.yaml", "grafana-dashboard.json"])
def test_rules_and_dashboard_ask_for_metrics_that_exist(name: str) -> None:
    asked = set(METRIC.findall((DEPLOY / name).read_text(encoding="utf-8")))

    buckets = {f"{histogram}_bucket" for histogram in HISTOGRAMS}
    assert asked
    assert asked <= KNOWN | buckets


def test_every_rule_says_what_it_means() -> None:
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]

    for rule in group["rules"]:
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["labels"]["severity"] in {"page", "ticket"}


def test_the_dashboard_has_a_place_for_each_panel() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))

    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)


def test_whoever_stops_it_waits_for_the_drain() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    unit = (DEPLOY / "tollhouse.service").read_text(encoding="utf-8")
    manifests = (DEPLOY / "kubernetes" / "tollhouse.yaml").read_text(encoding="utf-8")
    deployment = next(iter(yaml.safe_load_all(manifests)))

    assert int(compose["services"]["gateway"]["stop_grace_period"].removesuffix("s")) > DRAIN
    assert int(unit.partition("TimeoutStopSec=")[2].split()[0]) > DRAIN
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > DRAIN


def test_the_image_is_built_from_files_that_exist_and_versions_that_are_ours() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    copied = [
        line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line
    ]
    assert all((ROOT / name).exists() for names in copied for name in names)
    (builder,) = project["build-system"]["requires"]
    assert any(builder in line for line in lines)
    image = f"tollhouse:{project['project']['version']}"
    for path in (DEPLOY / "kubernetes").glob("*.yaml"):
        assert f"image: {image}" in path.read_text(encoding="utf-8")
