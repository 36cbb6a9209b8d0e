"""Only requests whose end is certain, and that leave the connection open, are whole requests."""

import pytest

from tests.serving.corpus import get, post, sized
from tollhouse.serving.whole_request import WholeRequestParser

WHOLE = sized(b"hello")


@pytest.mark.parametrize(
    ("data", "request_line"),
    [
        pytest.param(get(), (b"GET", b"/echo"), id="without a body"),
        pytest.param(WHOLE, (b"POST", b"/echo"), id="with a body"),
        pytest.param(get(line=b"HEAD /v1?a=b HTTP/1.1"), (b"HEAD", b"/v1?a=b"), id="with a query"),
        pytest.param(b"\r\n" + get(), (b"GET", b"/echo"), id="after an empty line"),
    ],
)
def test_one_complete_request_is_whole(data: bytes, request_line: tuple[bytes, bytes]) -> None:
    assert WholeRequestParser().parse(data) == request_line


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(WHOLE[:-1], id="a part of the body"),
        pytest.param(WHOLE[:20], id="a part of the head"),
        pytest.param(WHOLE + get(), id="two"),
        pytest.param(WHOLE + b"GE", id="a part of another"),
        pytest.param(b"\r\n", id="an empty line"),
        pytest.param(post(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), id="chunks"),
        pytest.param(get(b"Connection: close"), id="the last of its connection"),
        pytest.param(get(line=b"GET / HTTP/1.0"), id="HTTP/1.0"),
        pytest.param(
            get(b"Connection: keep-alive", line=b"GET / HTTP/1.0"), id="HTTP/1.0 that goes on"
        ),
        pytest.param(get(b"Connection: Upgrade", b"Upgrade: h2c"), id="an offer to upgrade"),
        pytest.param(get(line=b"CONNECT a:1 HTTP/1.1"), id="a tunnel"),
        pytest.param(post(b"Content-Length: 1", b"Content-Length: 1", body=b"a"), id="two lengths"),
        pytest.param(b"GET / HTTP/1.1\nHost: a\n\n", id="bare line feeds"),
    ],
)
def test_nothing_else_is_whole_and_nothing_is_kept_of_it(data: bytes) -> None:
    parser = WholeRequestParser()

    assert parser.parse(data) is None
    assert parser.parse(WHOLE) == (b"POST", b"/echo"), "the next bytes begin where a request begins"
