"""Heads of requests: exactly what was meant, or nothing."""

import pytest

from tollhouse.backends.http1 import NotSendable, Origin, request_head


def test_a_head_says_where_and_how_much() -> None:
    head = request_head("POST", "http://engine:8000/v1/chat?x=1", (("accept", "a/b"),))

    assert head.origin == Origin(is_tls=False, host="engine", port=8000)
    assert head.with_body(b"{}") == (
        b"POST /v1/chat?x=1 HTTP/1.1\r\nhost: engine:8000\r\naccept: a/b\r\n"
        b"content-length: 2\r\n\r\n"
    )
    assert head.with_body(b"").endswith(b"content-length: 0\r\n\r\n")
    assert b"content-length" not in head.with_body(None)


@pytest.mark.parametrize(
    ("url", "origin", "host"),
    [
        ("https://engine", Origin(is_tls=True, host="engine", port=443), b"engine"),
        ("https://engine:8443", Origin(is_tls=True, host="engine", port=8443), b"engine:8443"),
        ("http://ENGINE:80/", Origin(is_tls=False, host="engine", port=80), b"engine"),
        ("http://[::1]:8000", Origin(is_tls=False, host="::1", port=8000), b"[::1]:8000"),
    ],
)
def test_the_host_is_named_as_it_is_reached(url: str, origin: Origin, host: bytes) -> None:
    head = request_head("GET", url, ())

    assert head.origin == origin
    assert head.lines == b"GET / HTTP/1.1\r\nhost: %b\r\n" % host


@pytest.mark.parametrize(
    "url",
    [
        "ftp://engine/v1",
        "http:///v1",
        "http://name:password@engine/v1",
        "http://engine/v1#part",
        "http://engine/a b",
        "http://engine/\u00e4",
        "http://engine/v1\x00",
        "http://\u00e4ngine/v1",
    ],
)
def test_an_address_that_is_none_is_not_sent(url: str) -> None:
    with pytest.raises(NotSendable):
        request_head("GET", url, ())


@pytest.mark.guarantee("T30")
@pytest.mark.parametrize("bad", ["a\r\nx: y", "a\nb", "a\rb", "a\0b", " a", "a ", "\u00e4", "\x7f"])
def test_a_value_cannot_begin_another_line(bad: str) -> None:
    with pytest.raises(NotSendable) as caught:
        request_head("POST", "http://engine/v1", (("authorization", bad),))

    assert bad not in str(caught.value)


@pytest.mark.guarantee("T30")
@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\nb", "\u00e4", "Host", "content-length"])
def test_a_name_cannot_change_the_framing(name: str) -> None:
    with pytest.raises(NotSendable):
        request_head("POST", "http://engine/v1", ((name, "x"),))


def test_a_head_shows_no_secret() -> None:
    head = request_head("POST", "http://engine/v1", (("authorization", "Bearer secret"),))

    assert "secret" not in repr(head)
