"""The files that operators copy: of the right form, and true to the program."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]
import pytest
import yaml

import tollhouse
from tollhouse.settings import ServerSettings
from tools.reference.metrics import declared

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
KUSTOMIZATIONS = sorted(KUBERNETES.rglob("kustomization.yaml"))
DOCUMENTS: list[tuple[Path, dict[str, Any]]] = [
    (path, document)
    for path in sorted(KUBERNETES.rglob("*.yaml"))
    if path not in KUSTOMIZATIONS
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
MANIFESTS = [
    pytest.param(document, id=f"{path.name} {document['kind']}")
    for path, document in DOCUMENTS
    # Its schema belongs to the Prometheus operator.
    if document["kind"] != "PodMonitor"
]
POD_SPECS: list[dict[str, Any]] = [
    document["spec"]["template"]["spec"]
    for _, document in DOCUMENTS
    if "template" in document["spec"]
]
METRIC = re.compile(r"\btollhouse_\w+")
RUNBOOKS = sorted((ROOT / "docs/runbooks").glob("*.md"))
KNOWN = {name for name, *_ in declared()}
HISTOGRAMS = {name for name, kind, *_ in declared() if kind == "histogram"}
MEASURED_BY_WORKERS = {
    name for name in KNOWN if name.startswith(("tollhouse_database_", "tollhouse_partition_"))
} - {
    # How much is used tells nothing alone.
    "tollhouse_database_pool_in_use",
    "tollhouse_database_admin_pool_in_use",
    "tollhouse_database_size_bytes",
}
SECRET_MODE = 0o440
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


def test_every_place_that_a_release_changes_has_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert project["version"] == tollhouse.__version__
    assert re.findall(r"tollhouse-([\d.]+)-py3", readme) == [tollhouse.__version__]


@pytest.mark.parametrize("metric", sorted(MEASURED_BY_WORKERS))
def test_every_measure_of_the_database_has_a_rule(metric: str) -> None:
    assert metric in METRIC.findall((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))


def test_every_rule_says_what_it_means() -> None:
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]

    for rule in group["rules"]:
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["labels"]["severity"] in {"page", "ticket"}


def test_every_rule_has_a_runbook_and_every_runbook_a_rule() -> None:
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    runbooks = {path.stem for path in RUNBOOKS} - {"index"}

    addresses = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in group["rules"]}
    assert addresses == {
        name: f"https://gateway.example/docs/runbooks/{name}/" for name in runbooks
    }


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/runbooks").glob("*.md")), ids=lambda p: p.stem
)
def test_runbooks_name_metrics_and_settings_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    settings = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")

    buckets = {f"{histogram}_bucket" for histogram in HISTOGRAMS}
    assert set(METRIC.findall(text)) <= KNOWN | buckets
    named = re.findall(r"`((?:server|database|redis|inference|activity|ledger)\.[a-z_]+)`", text)
    assert [name for name in named if f"`{name}`" not in settings] == []


def test_the_dashboard_has_a_place_for_each_panel() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))

    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)


def test_a_stop_waits_for_the_drain() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    unit = (DEPLOY / "tollhouse.service").read_text(encoding="utf-8")
    manifests = (KUBERNETES / "base" / "gateway.yaml").read_text(encoding="utf-8")
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
    assert copied
    assert all((ROOT / name).exists() for names in copied for name in names)
    (builder,) = project["build-system"]["requires"]
    assert any(builder in line for line in lines)
    image = f"tollhouse:{project['project']['version']}"
    base = yaml.safe_load((KUBERNETES / "base" / "kustomization.yaml").read_text(encoding="utf-8"))
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert [f"{each['name']}:{each['newTag']}" for each in base["images"]] == [image]
    assert compose["x-tollhouse"]["image"] == image


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: path.parent.name)
def test_every_resource_of_an_overlay_exists(path: Path) -> None:
    kustomization = yaml.safe_load(path.read_text(encoding="utf-8"))

    assert all((path.parent / name).exists() for name in kustomization["resources"])


def test_every_file_of_a_folder_is_a_resource() -> None:
    for path in KUSTOMIZATIONS:
        declared = yaml.safe_load(path.read_text(encoding="utf-8"))["resources"]
        beside = {each.name for each in path.parent.glob("*.yaml")} - {path.name}
        assert beside <= set(declared)


def test_what_the_pods_need_is_generated() -> None:
    """Names in the base come from the base or from every overlay."""
    generated: dict[str, set[str]] = {}
    for path in KUSTOMIZATIONS:
        kustomization = yaml.safe_load(path.read_text(encoding="utf-8"))
        generators = (
            *kustomization.get("configMapGenerator", []),
            *kustomization.get("secretGenerator", []),
        )
        generated[path.parent.name] = {each["name"] for each in generators}
    needed = {
        volume.get("configMap", {}).get("name") or volume.get("secret", {}).get("secretName")
        for path, document in DOCUMENTS
        if path.parent.name == "base"
        for volume in document["spec"].get("template", {}).get("spec", {}).get("volumes", [])
    } - {None}

    assert {"tollhouse"} <= needed
    for overlay in ("evaluation", "production"):
        assert needed <= generated["base"] | generated[overlay]


def test_a_change_of_configuration_changes_nothing_that_is_immutable() -> None:
    """Generated names change with every edit, and the template of a Job cannot be changed."""
    assert "Job" not in {document["kind"] for _, document in DOCUMENTS}


def test_a_pod_migrates_the_database_that_it_serves_from() -> None:
    (spec,) = (spec for spec in POD_SPECS if "initContainers" in spec)
    (migrate,), (gateway,) = spec["initContainers"], spec["containers"]

    assert migrate["args"] == ["migrate"]
    for part in ("image", "envFrom", "volumeMounts", "securityContext"):
        assert migrate[part] == gateway[part]


def test_pods_run_without_privileges_and_read_their_secrets() -> None:
    for spec in POD_SPECS:
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        for volume in spec.get("volumes", []):
            if "secret" in volume:
                assert security["fsGroup"] == security["runAsGroup"]
                assert volume["secret"]["defaultMode"] == SECRET_MODE


@pytest.mark.parametrize(
    ("identity", "is_readable"),
    [
        (("--reuid", "10001", "--regid", "10001", "--groups", "10001"), True),
        (("--reuid", "10001", "--regid", "10002", "--clear-groups"), False),
    ],
)
def test_the_pods_group_reads_the_files_of_the_secret(
    identity: tuple[str, ...], is_readable: bool
) -> None:
    """As in a pod: the file belongs to root and to `fsGroup`, with the mode of the volume."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another group")
    # The folders of pytest are closed to other users.
    with TemporaryDirectory() as volume:
        Path(volume).chmod(0o755)
        secret = Path(volume) / "master"
        secret.write_text("secret")
        secret.chmod(SECRET_MODE)
        os.chown(secret, 0, 10001)

        read = subprocess.run(
            ["/usr/bin/setpriv", *identity, "cat", secret],
            check=False,
            capture_output=True,
            text=True,
        )

    assert (read.stdout == "secret") is is_readable
