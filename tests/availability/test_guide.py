"""The guide to high availability shows the file that tests run, and its commands work."""

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.availability.deployment import Deployment
from tests.availability.patroni import PATRONI, PATRONI_FILE, REPOSITORY
from tests.availability.test_faults import ROUNDS
from tests.cli.documents import read, scripts

GUIDE = "docs/guides/high-availability.md"


def test_the_guide_shows_the_configuration_that_tests_run() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", read(GUIDE), re.MULTILINE | re.DOTALL)

    assert shown == PATRONI_FILE.read_text(encoding="utf-8")


@pytest.mark.clock
@pytest.mark.nightly
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.skipif(ROUNDS == 0, reason="make test-availability runs Patroni")
async def test_a_standby_is_made_anew_as_the_guide_says(deployment: Deployment) -> None:
    cluster = deployment.cluster
    await cluster.wait_until_healthy()
    standby = await cluster.synchronous_standby()
    _, script = scripts(read(GUIDE))
    identifier = standby.disk / "data" / "postmaster.pid"
    before = identifier.read_text(encoding="utf-8")

    done = await asyncio.to_thread(
        subprocess.run,
        ["/bin/bash", "-ec", script],
        env={
            "PATH": f"{Path(PATRONI).parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "PATRONI_ETCD3_HOSTS": cluster.etcd_hosts,
            "STANDBY": standby.name,
        },
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert standby.name in done.stdout
    await cluster.wait_until_healthy()
    assert identifier.read_text(encoding="utf-8") != before
