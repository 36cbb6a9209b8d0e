"""Official SDKs, unmodified, each version in its own environment, against a live gateway."""

import shutil
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tests.journeys.stage import Stage, Told, open_stage
from tests.support import seeds
from tools import sdks

pytestmark = pytest.mark.asyncio(loop_scope="module")

NODE_DRIVER = "tests/journeys/drivers/openai_driver.mjs"
OPENAI_CHECKS_MIN = 60
Record = Callable[[str, object], None]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage(migrated_template: str) -> AsyncIterator[Stage]:
    async with open_stage(migrated_template) as opened:
        yield opened


@pytest.mark.guarantee("T32")
@pytest.mark.parametrize("sdk", seeds.partly_nightly(sdks.PYTHON_SDKS, at_landings=2))
async def test_python_sdk_reads_what_was_said(
    stage: Stage, sdk: str, subtests: pytest.Subtests, record_property: Record
) -> None:
    assert sdks.is_prepared(sdk), "run `bash .ci/run sdks`"
    family = sdk.split("-", maxsplit=1)[0]
    told = await stage.play(sdks.python_of(sdk), "-m", f"tests.journeys.drivers.{family}_driver")

    judge(told, subtests, record_property)
    assert family != "openai" or len(told.lines) > OPENAI_CHECKS_MIN


@pytest.mark.guarantee("T32")
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node on this machine")
async def test_node_sdk_reads_what_was_said(
    stage: Stage, subtests: pytest.Subtests, record_property: Record
) -> None:
    assert sdks.is_prepared(sdks.NODE_SDK), "run `bash .ci/run sdks`"
    told = await stage.play("node", NODE_DRIVER, sdks.HOME / sdks.NODE_SDK)

    judge(told, subtests, record_property)
    assert len(told.lines) > OPENAI_CHECKS_MIN


def judge(told: Told, subtests: pytest.Subtests, record_property: Record) -> None:
    """The last line says how many checks there were, so that none can be lost."""
    *lines, last = told.lines
    assert len(lines) == last["checks"] > 0
    for line in lines:
        with subtests.test(line["check"]):
            assert line["fault"] is None, line["fault"]
            if line["requests"] is not None:
                assert told.requests[line["check"]] == line["requests"]
    record_property("sdk_checks", len(lines))
