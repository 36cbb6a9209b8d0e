"""The forms of `redis.url`, and what is refused at start."""

import pytest

from tollhouse.base import redis_url
from tollhouse.base.redis_url import RedisMode
from tollhouse.settings import InvalidSettings, RedisSettings


def test_a_server_that_a_sentinel_names_gets_user_database_and_options() -> None:
    url = redis_url.parse(
        "rediss+sentinel://ann:p%40ss@a,[fd00::1]:5000/main/2"
        "?sentinel_password=s%2Fp&ssl_ca_certs=/etc/ca.pem"
    )

    assert (url.mode, url.service) == (RedisMode.SENTINEL, "main")
    assert url.members == [
        "rediss://:s%2Fp@a:26379/?ssl_ca_certs=%2Fetc%2Fca.pem",
        "rediss://:s%2Fp@[fd00::1]:5000/?ssl_ca_certs=%2Fetc%2Fca.pem",
    ]
    assert url.server("10.0.0.1", 7000) == (
        "rediss://ann:p%40ss@10.0.0.1:7000/2?ssl_ca_certs=%2Fetc%2Fca.pem"
    )


def test_nodes_of_a_cluster_get_the_user() -> None:
    url = redis_url.parse("redis+cluster://:word@a:7000,b")

    assert url.members == ["redis://:word@a:7000/0", "redis://:word@b:6379/0"]
    assert url.server("fd00::2", 7000) == "redis://:word@[fd00::2]:7000/0"


def test_passwords_are_not_shown() -> None:
    url = redis_url.parse("redis+sentinel://:word@a/main?sentinel_password=other")

    assert "word" not in repr(url)
    assert "other" not in repr(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sentinel://a/main", "not of the form"),
        ("redis+sentinel://a:26379", "names no service"),
        ("redis+sentinel://a/main/x", "names no service"),
        ("redis+sentinel://user:p@ss@a/main", "not of the form"),
        ("redis+cluster://a:7000/1", "only database 0"),
        ("redis://a,b/0", "several hosts"),
        ("redis://a:70000/0", "port 70000"),
        ("redis://a/0?ssl_ca_certs=/ca.pem", "needs TLS"),
        ("rediss://a/0?ssl_cert_reqs=maybe", "unknown ssl_cert_reqs"),
        ("redis://a/0?sentinel_password=x", "unknown option sentinel_password"),
        ("redis://a/0?protocol=3", "unknown option protocol"),
    ],
)
def test_other_forms_are_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(InvalidSettings, match=reason):
        RedisSettings(url=url)
