"""Which master secret is written with, and which ones a starting worker must have."""

import itertools

import pytest

from tollhouse.storage.master_secrets import MasterSecrets, preferred_id, used_ids

CONFIGURATIONS = (["old"], ["new", "old"], ["new"], ["old", "new"])


@pytest.mark.parametrize(
    ("own", "live", "written_with"),
    [
        (["new", "old"], [], "new"),
        (["new", "old"], [["new", "old"]], "new"),
        (["new", "old"], [["new", "old"], ["old"]], "old"),
        (["old"], [["new", "old"], ["old"]], "old"),
        (["new", "old"], [["new", "old"], ["new"]], "new"),
        (["new"], [["old"]], "new"),
    ],
)
def test_the_newest_secret_that_every_live_worker_accepts_is_written_with(
    own: list[str], live: list[list[str]], written_with: str
) -> None:
    assert preferred_id(own, live) == written_with


@pytest.mark.parametrize("count", [1, 2, 3])
def test_whoever_is_let_in_reads_everything_and_is_read_by_everyone(count: int) -> None:
    """For all live workers that share a secret, and any that starts and is not refused."""
    for live in itertools.product(CONFIGURATIONS, repeat=count):
        if not set(live[0]).intersection(*live[1:]):
            continue
        for starting in CONFIGURATIONS:
            if not used_ids(live) <= set(starting):
                continue
            together = [*live, starting]
            written = {preferred_id(one, together) for one in together}
            assert all(written <= set(reader) for reader in together), together


def test_an_id_is_the_same_on_every_host_and_does_not_contain_its_secret() -> None:
    secret = b"a master secret of the deployment"
    (master_id,) = MasterSecrets([secret]).ids

    assert MasterSecrets([b"another", secret]).ids[1] == master_id
    assert secret.hex()[:8] not in master_id
    assert len(master_id) == 16
