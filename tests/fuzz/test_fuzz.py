"""Every kept input holds, and a short run finds no other. `make fuzz` is the long run.

`TOLLHOUSE_FUZZ_SECONDS` says how long each target runs.
"""

import os
from importlib import import_module

import pytest

from tests.fuzz import corpus
from tests.fuzz.running import fuzz
from tests.support import seeds

pytest.importorskip("atheris", reason="atheris has no wheel for this machine")

SECONDS = int(os.environ.get("TOLLHOUSE_FUZZ_SECONDS", "20"))


@pytest.mark.guarantee("T27", "T31")
@pytest.mark.parametrize("target", corpus.TARGETS)
def test_kept_inputs_hold(target: str) -> None:
    check = import_module(f"tests.fuzz.{target}").check

    for data in corpus.kept(target):
        check(data)


@pytest.mark.guarantee("T27", "T31")
@pytest.mark.parametrize("target", seeds.partly_nightly(corpus.TARGETS, at_landings=1))
def test_a_short_run_finds_nothing(target: str) -> None:
    result = fuzz(target, seconds=SECONDS)

    assert result.findings == []
    assert result.executions > len(corpus.kept(target)), "inputs were tried beside the kept ones"
