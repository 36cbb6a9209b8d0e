"""Which `anthropic-version` headers are accepted (OQ-68)."""

import pytest

from tollhouse.api.handlers.count_tokens import VERSIONS, check_version
from tollhouse.api.head import Head
from tollhouse.base.errors import InvalidRequest

OLD, NEW = (version.encode() for version in VERSIONS)


def head(*versions: bytes) -> Head:
    return Head([(b"anthropic-version", version) for version in versions])


@pytest.mark.parametrize("versions", [(), (OLD,), (NEW,)])
def test_a_known_version_or_none_is_accepted(versions: tuple[bytes, ...]) -> None:
    check_version(head(*versions))


@pytest.mark.parametrize(
    "versions", [(b"",), (b"2023-06-02",), (OLD, OLD), (OLD, NEW), (OLD + b", " + NEW,)]
)
def test_an_unknown_or_doubled_version_is_refused(versions: tuple[bytes, ...]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_version(head(*versions))

    assert refused.value.param == "anthropic-version"
    assert VERSIONS[0] in refused.value.message
