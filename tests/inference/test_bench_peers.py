"""What `bench.peers` says about given rounds, and that every pinned gateway can be published."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from string import Template

import pytest

from bench.support import processes
from bench.support.peers import report
from bench.support.peers.known import CONFIGURATIONS, PEERS, PINS, Peer, Runtime
from bench.support.peers.report import Gateway, GatewayFigures

QUICK = GatewayFigures(
    requests_per_second=2_000.0,
    cpu_us_per_request=400.0,
    cpu_us_per_chunk=40.0,
    p50_ms=2.0,
    p99_ms=4.0,
    full_rate_p50_ms=2.5,
    full_rate_p99_ms=5.0,
    memory_mb=100.0,
    postgresql_cpu_us_per_request=100.0,
)
SLOW = GatewayFigures(
    requests_per_second=500.0,
    cpu_us_per_request=2_000.0,
    cpu_us_per_chunk=120.0,
    p50_ms=6.0,
    p99_ms=20.0,
    full_rate_p50_ms=None,
    full_rate_p99_ms=None,
    memory_mb=300.0,
    postgresql_cpu_us_per_request=0.0,
)


def gateway(name: str, runtime: Runtime) -> Gateway:
    return Gateway(
        name=name, version="1.2.3", runtime=runtime, configuration="x.yaml", leaves_out="keys"
    )


OURS = gateway(report.TOLLHOUSE, Runtime.PYTHON)
PYTHON_ONE = gateway("a Python gateway", Runtime.PYTHON)


def rounds(other: str, *figures: GatewayFigures) -> list[Mapping[str, GatewayFigures]]:
    return [{report.TOLLHOUSE: QUICK, other: each} for each in figures]


def test_ratios_are_medians_of_those_inside_a_round() -> None:
    busy = replace(QUICK, requests_per_second=200.0, cpu_us_per_request=800.0)
    measured = [
        {report.TOLLHOUSE: QUICK, PYTHON_ONE.name: SLOW},
        {report.TOLLHOUSE: busy, PYTHON_ONE.name: replace(SLOW, requests_per_second=40.0)},
        {report.TOLLHOUSE: QUICK, PYTHON_ONE.name: SLOW},
    ]

    ahead = report.ratios(measured, PYTHON_ONE.name)

    assert ahead["requests_per_second"] == 4.0
    assert ahead["cpu_us_per_request"] == 5.0
    assert ahead["cpu_us_per_chunk"] == 3.0
    assert ahead["memory_mb"] == 3.0


@pytest.mark.parametrize("figure", report.AHEAD)
def test_one_figure_behind_misses_its_bar_alone(figure: str) -> None:
    worse = 3_000.0 if figure == "requests_per_second" else 1.0
    measured = rounds(PYTHON_ONE.name, replace(SLOW, **{figure: worse}))

    held = report.bars(measured, [PYTHON_ONE, OURS])

    assert [words for words, is_held in held.items() if not is_held] == [
        f"{report.AHEAD[figure]} than every Python and Node gateway"
    ]


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.pin)
def test_a_peer_is_pinned_and_locked_and_has_a_configuration(peer: Peer) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", peer.version)
    assert peer.version in peer.lock.read_text("utf-8")
    text = peer.configuration_file.read_text("utf-8")
    assert "upstream_port" in Template(text).get_identifiers()
    assert Template(text).is_valid()


def test_no_lock_and_no_configuration_is_left_over() -> None:
    pinned = {path.stem for path in PINS.iterdir()}
    configured = {
        path.name for path in CONFIGURATIONS.iterdir() if path.suffix in (".yaml", ".json")
    }

    assert pinned == {peer.pin for peer in PEERS}
    assert configured == {peer.configuration for peer in PEERS}


def test_a_process_tree_holds_children_of_children() -> None:
    script = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}])"
    root = subprocess.Popen([sys.executable, "-c", nested], process_group=0)
    try:
        deadline = time.monotonic() + 30
        while len(found := processes.tree(root.pid)) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found[0] == root.pid
        assert [processes.parent(child) for child in found[1:]] == found[:-1]
    finally:
        os.killpg(root.pid, signal.SIGKILL)
        root.wait()
    assert processes.tree(root.pid) == []
