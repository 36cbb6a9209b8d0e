"""Bytes that a server must survive, as data, and what each of two servers makes of them.

The expected outcome is the statuses of all answers on the connection, in order. 200 stands for
"handed to the application", so that the same cases can be run against any application: pass
`run_case` the address of a server and compare with `Case.bounded` or `Case.granian`.
"""

from dataclasses import dataclass

from tests.serving.raw import AFTER_THE_ANSWER, Observation, exchange

HEADER_BYTES_MAX = 65_536
BODY_BYTES_MAX = 1_000_000

Statuses = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One connection. `sizes` are the bodies that an application may process, in order."""

    name: str
    segments: tuple[bytes, ...]
    bounded: Statuses
    granian: Statuses
    sizes: tuple[int, ...] = ()
    is_half_closed: bool = False


async def run_case(
    address: tuple[str, int],
    case: Case,
    *,
    path: bytes = b"/echo",
    headers: tuple[bytes, ...] = (),
    answers: int = 1,
) -> Observation:
    """Send the case to a server and report everything that came back.

    So many answers are waited for, unless the connection ends.

    Another application may need another path, or headers such as a credential, to read a body.
    Cases that are sent byte by byte or measured to the byte are best left as they are.
    """
    host = b"Host: localhost\r\n"
    wanted = host + b"".join(header + b"\r\n" for header in headers)
    # Only the first head: what follows may be a body whose length is stated.
    first, *rest = case.segments or (b"",)
    first = first.replace(b" /echo ", b" %b " % path, 1).replace(host, wanted, 1)
    return await exchange(
        address, first, *rest, is_half_closed=case.is_half_closed, answers=answers
    )


def post(*headers: bytes, body: bytes = b"", line: bytes = b"POST /echo HTTP/1.1") -> bytes:
    return b"\r\n".join((line, b"Host: localhost", *headers, b"", body))


def get(*headers: bytes, line: bytes = b"GET /echo HTTP/1.1") -> bytes:
    return post(*headers, line=line)


def sized(body: bytes, *headers: bytes) -> bytes:
    return post(b"Content-Length: %d" % len(body), *headers, body=body)


def chunked(body: bytes, *headers: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", *headers, body=body)


def padded(size: int) -> bytes:
    """A head of exactly `size` bytes."""
    bare = len(get(b"X-Pad: "))
    return get(b"X-Pad: " + b"a" * (size - bare))


def case(
    name: str,
    *segments: bytes,
    bounded: Statuses,
    granian: Statuses | None = None,
    sizes: tuple[int, ...] = (),
    is_half_closed: bool = False,
) -> Case:
    return Case(
        name=name,
        segments=segments,
        bounded=bounded,
        granian=bounded if granian is None else granian,
        sizes=sizes,
        is_half_closed=is_half_closed,
    )


OK = (200,)
BAD = (400,)
CUT: Statuses = ()
SMUGGLED = get(line=b"GET /smuggled HTTP/1.1")
HELLO = b"5\r\nhello\r\n0\r\n\r\n"
UPGRADE = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")

SOUND = (
    case("get", get(), bounded=OK, sizes=(0,)),
    case("post with a length", sized(b"hello"), bounded=OK, sizes=(5,)),
    case("post in chunks", chunked(HELLO), bounded=OK, sizes=(5,)),
    case(
        "get with a body",
        post(b"Content-Length: 5", body=b"hello", line=b"GET / HTTP/1.1"),
        bounded=OK,
        sizes=(5,),
    ),
    case("byte by byte", *(bytes([byte]) for byte in sized(b"hello")), bounded=OK, sizes=(5,)),
    case(
        "chunks byte by byte", *(bytes([byte]) for byte in chunked(HELLO)), bounded=OK, sizes=(5,)
    ),
    case(
        "one thousand chunks of one byte",
        chunked(b"1\r\nx\r\n" * 1000 + b"0\r\n\r\n"),
        bounded=OK,
        sizes=(1000,),
    ),
    case(
        "many chunks of sixteen bytes",
        chunked((b"10\r\n" + b"x" * 16 + b"\r\n") * 20_000 + b"0\r\n\r\n"),
        bounded=OK,
        sizes=(320_000,),
    ),
    case(
        "upper-case chunked",
        post(b"Transfer-Encoding: CHUNKED", body=HELLO),
        bounded=OK,
        sizes=(5,),
    ),
    case("empty lines before the request", b"\r\n\r\n" + get(), bounded=OK, sizes=(0,)),
    case("http/1.0", get(line=b"GET / HTTP/1.0"), bounded=OK, sizes=(0,)),
    case("high bytes in a header value", get(b"X-Name: caf\xe9"), bounded=OK, sizes=(0,)),
    case(
        "two thousand headers",
        get(*(b"X-%d: v" % number for number in range(2000))),
        bounded=OK,
        granian=(431,),
        sizes=(0,),
    ),
    case("half-megabyte body", sized(b"x" * 500_000), bounded=OK, sizes=(500_000,)),
)

FRAMING = (
    case(
        "length and chunked",
        post(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "chunked and length",
        post(b"Transfer-Encoding: chunked", b"Content-Length: 5", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "length, chunked and a smuggled request",
        post(b"Content-Length: 6", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + SMUGGLED),
        bounded=BAD,
        granian=OK,
        sizes=(0,),
    ),
    case(
        "equal lengths twice",
        sized(b"hello", b"Content-Length: 5"),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case("different lengths twice", sized(b"hello", b"Content-Length: 3"), bounded=BAD),
    case("list of equal lengths", post(b"Content-Length: 5, 5", body=b"hello"), bounded=BAD),
    case("length with plus", post(b"Content-Length: +5", body=b"hello"), bounded=BAD),
    case("length with minus", post(b"Content-Length: -5", body=b"hello"), bounded=BAD),
    case("hexadecimal length", post(b"Content-Length: 0x5", body=b"hello"), bounded=BAD),
    case("length with underscore", post(b"Content-Length: 0_5", body=b"hello"), bounded=BAD),
    case("length with inner space", post(b"Content-Length: 5 5", body=b"hello"), bounded=BAD),
    case("empty length", post(b"Content-Length:", body=b"hello"), bounded=BAD),
    case(
        "length beyond 64 bits",
        post(b"Content-Length: 18446744073709551621", body=b"hello"),
        bounded=BAD,
    ),
    case(
        "chunked, then identity",
        post(b"Transfer-Encoding: chunked, identity", body=HELLO),
        bounded=BAD,
    ),
    case("identity", post(b"Transfer-Encoding: identity", body=HELLO), bounded=BAD),
    case("gzip only", post(b"Transfer-Encoding: gzip", body=HELLO), bounded=BAD),
    case("unknown encoding", post(b"Transfer-Encoding: xchunked", body=HELLO), bounded=BAD),
    case(
        "chunked with a vertical tab",
        post(b"Transfer-Encoding: \x0bchunked", body=HELLO),
        bounded=BAD,
    ),
    case(
        "chunked twice in one header",
        post(b"Transfer-Encoding: chunked, chunked", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "chunked in two headers",
        chunked(HELLO, b"Transfer-Encoding: chunked"),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "identity, then chunked",
        post(b"Transfer-Encoding: identity, chunked", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "gzip, then chunked",
        post(b"Transfer-Encoding: gzip, chunked", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "gzip, chunked and a second request",
        post(b"Transfer-Encoding: gzip, chunked", body=HELLO) + get(),
        bounded=BAD,
        granian=(200, 200),
        sizes=(5, 0),
    ),
    case(
        "gzip, then chunked in a second header",
        post(b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "empty coding, then chunked",
        post(b"Transfer-Encoding: , chunked", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case("chunked, then nothing", post(b"Transfer-Encoding: chunked,", body=HELLO), bounded=BAD),
    case("empty transfer coding", post(b"Transfer-Encoding:", body=HELLO), bounded=BAD),
    case(
        "chunked with a parameter", post(b"Transfer-Encoding: chunked;q=1", body=HELLO), bounded=BAD
    ),
    case("quoted chunked", post(b'Transfer-Encoding: "chunked"', body=HELLO), bounded=BAD),
    case(
        "chunked between spaces",
        post(b"Transfer-Encoding:  chunked ", body=HELLO),
        bounded=OK,
        sizes=(5,),
    ),
    case(
        "chunked before a tab",
        post(b"Transfer-Encoding: chunked\t", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "gzip, chunked and a length",
        post(b"Transfer-Encoding: gzip, chunked", b"Content-Length: 5", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "upgrade offer with identity, then chunked",
        post(*UPGRADE, b"Transfer-Encoding: identity, chunked", body=HELLO),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case(
        "gzip in http/1.0", post(b"Transfer-Encoding: gzip", line=b"POST / HTTP/1.0"), bounded=BAD
    ),
    case(
        "chunked, then identity in a second header",
        chunked(HELLO, b"Transfer-Encoding: identity"),
        bounded=BAD,
    ),
    case(
        "chunked in http/1.0",
        post(b"Transfer-Encoding: chunked", body=HELLO, line=b"POST / HTTP/1.0"),
        bounded=BAD,
    ),
    case("bad chunk terminator", chunked(b"5\r\nhelloXX0\r\n\r\n"), bounded=BAD),
    case("chunk of the wrong size", chunked(b"4\r\nhello\r\n0\r\n\r\n"), bounded=BAD),
    case("chunk size with minus", chunked(b"-5\r\nhello\r\n0\r\n\r\n"), bounded=BAD),
    case("chunk size with prefix", chunked(b"0x5\r\nhello\r\n0\r\n\r\n"), bounded=BAD),
    case(
        "chunk size beyond 64 bits",
        chunked(b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        bounded=BAD,
    ),
    case("chunk size of 64 bits", chunked(b"ffffffffffffffff\r\nhello"), bounded=(408,)),
    case("empty chunk size", chunked(b"\r\nhello\r\n0\r\n\r\n"), bounded=BAD),
    case("chunk lines ended by line feed", chunked(b"5\nhello\n0\n\n"), bounded=BAD),
    case("chunk size ended by line feed", chunked(b"5\nhello\r\n0\r\n\r\n"), bounded=BAD),
    case("chunk extension with a line feed", chunked(b"5;a\nb\r\nhello\r\n0\r\n\r\n"), bounded=BAD),
    case(
        "chunk size with a space",
        chunked(b"5 \r\nhello\r\n0\r\n\r\n"),
        bounded=BAD,
        granian=OK,
        sizes=(5,),
    ),
    case("second chunk malformed", chunked(b"5\r\nhello\r\n"), b"zz\r\n", bounded=BAD),
    case("small chunk extension", chunked(b"5;a=b\r\nhello\r\n0\r\n\r\n"), bounded=OK, sizes=(5,)),
    case(
        "forty thousand chunks of one byte",
        chunked(b"1\r\nx\r\n" * 40_000 + b"0\r\n\r\n"),
        bounded=BAD,
        granian=OK,
        sizes=(40_000,),
    ),
    case(
        "forty thousand chunks of three bytes",
        chunked(b"3\r\nxxx\r\n" * 40_000 + b"0\r\n\r\n"),
        bounded=BAD,
        granian=OK,
        sizes=(120_000,),
    ),
    case(
        "chunk extension of 200 kB",
        chunked(b"5;" + b"a" * 200_000 + b"\r\nhello\r\n0\r\n\r\n"),
        bounded=BAD,
    ),
    case(
        "chunk extension of 10 MB",
        chunked(b"5;" + b"a" * 10_000_000 + b"\r\nhello\r\n0\r\n\r\n"),
        bounded=BAD,
    ),
    case(
        "small trailer", chunked(b"5\r\nhello\r\n0\r\nX-Trailer: a\r\n\r\n"), bounded=OK, sizes=(5,)
    ),
    case(
        "trailer of 200 kB",
        chunked(b"5\r\nhello\r\n0\r\nX-Trailer: " + b"a" * 200_000 + b"\r\n\r\n"),
        bounded=BAD,
    ),
    case(
        "trailer of 10 MB",
        chunked(b"5\r\nhello\r\n0\r\nX-Trailer: " + b"a" * 10_000_000 + b"\r\n\r\n"),
        bounded=BAD,
    ),
    case("declared body above the bound", sized(b"x" * (BODY_BYTES_MAX + 1)), bounded=(413,)),
    case(
        "counted body above the bound",
        chunked(b"100000\r\n" + b"x" * 1_048_576 + b"\r\n" + b"0\r\n\r\n"),
        bounded=(413,),
    ),
)

HEADS = (
    case(
        "bare line feeds",
        b"GET / HTTP/1.1\nHost: localhost\n\n",
        bounded=BAD,
        granian=OK,
        sizes=(0,),
    ),
    case("bare carriage return in a header", get(b"X-A: b\rX-C: d"), bounded=BAD),
    case("folded header", get(b"X-A: b\r\n c"), bounded=BAD),
    case("space before the colon", post(b"Content-Length : 5", body=b"hello"), bounded=BAD),
    case(
        "space before the first header", b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n", bounded=BAD
    ),
    case("nul in a header value", get(b"X-A: b\x00c"), bounded=BAD),
    case("nul in a header name", get(b"X-\x00A: b"), bounded=BAD),
    case("bracket in a header name", get(b"X-(A): b"), bounded=BAD),
    case("header without a name", get(b": b"), bounded=BAD),
    case("header without a colon", get(b"nonsense"), bounded=BAD),
    case("no host", b"GET /echo HTTP/1.1\r\n\r\n", bounded=OK, sizes=(0,)),
    case("two hosts", get(b"Host: other"), bounded=OK, sizes=(0,)),
    case(
        "host with a path", b"GET / HTTP/1.1\r\nHost: x/health?y=\r\n\r\n", bounded=OK, sizes=(0,)
    ),
    case("absolute form", get(line=b"GET http://evil.test/echo HTTP/1.1"), bounded=OK, sizes=(0,)),
    case(
        "absolute form without a path",
        get(line=b"GET http://evil.test HTTP/1.1"),
        bounded=BAD,
        granian=OK,
        sizes=(0,),
    ),
    case("asterisk form", get(line=b"OPTIONS * HTTP/1.1"), bounded=OK, sizes=(0,)),
    case(
        "authority form",
        get(line=b"GET evil.test:443 HTTP/1.1"),
        bounded=BAD,
        granian=OK,
        sizes=(0,),
    ),
    case("connect", get(line=b"CONNECT evil.test:443 HTTP/1.1"), bounded=BAD, granian=(405,)),
    case("empty target", get(line=b"GET  HTTP/1.1"), bounded=BAD),
    case("space in the target", get(line=b"GET /a b HTTP/1.1"), bounded=BAD),
    case("tab in the target", get(line=b"GET /a\tb HTTP/1.1"), bounded=BAD),
    case("nul in the target", get(line=b"GET /a\x00b HTTP/1.1"), bounded=BAD),
    case("high byte in the target", get(line=b"GET /\xe9 HTTP/1.1"), bounded=BAD),
    case("unknown method", get(line=b"HUNT / HTTP/1.1"), bounded=BAD, granian=OK, sizes=(0,)),
    case("lower-case method", get(line=b"get / HTTP/1.1"), bounded=BAD, granian=OK, sizes=(0,)),
    case("method with a bracket", get(line=b"G(T / HTTP/1.1"), bounded=BAD),
    case("http/0.9", b"GET /\r\n\r\n", bounded=BAD),
    case("http/0.9 by name", get(line=b"GET / HTTP/0.9"), bounded=BAD),
    case("http/1.2", get(line=b"GET / HTTP/1.2"), bounded=BAD),
    case("http/2 by name", get(line=b"GET / HTTP/2.0"), bounded=BAD),
    case("http/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bounded=BAD, granian=CUT),
    case("lower-case protocol", get(line=b"GET / http/1.1"), bounded=BAD),
    case("tls hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), bounded=BAD),
    case("only nul bytes", bytes(1000), bounded=BAD),
    case("largest head", padded(HEADER_BYTES_MAX), bounded=OK, sizes=(0,)),
    case(
        "head one byte too large",
        padded(HEADER_BYTES_MAX + 1),
        bounded=(431,),
        granian=OK,
        sizes=(0,),
    ),
    case("head of 100 kB", padded(100_000), bounded=(431,), granian=OK, sizes=(0,)),
    case(
        "head of 100 kB in two segments",
        padded(100_000)[:5000],
        padded(100_000)[5000:],
        bounded=(431,),
        granian=OK,
        sizes=(0,),
    ),
    case("head of 1 MB", padded(1_000_000), bounded=(431,)),
    case("head of 20 MB", padded(20_000_000), bounded=(431,)),
    case(
        "target of 100 kB",
        get(line=b"GET /" + b"a" * 100_000 + b" HTTP/1.1"),
        bounded=(431,),
        granian=(414,),
    ),
    case("header name of 100 kB", get(b"X" * 100_000 + b": b"), bounded=(431,)),
    case(
        "twenty thousand headers",
        get(*(b"X-%d: v" % number for number in range(20_000))),
        bounded=(431,),
    ),
    case("method without end", b"G" * 100_000, bounded=BAD, granian=CUT),
    case("only empty lines", b"\r\n" * 100_000, bounded=(431,), granian=CUT),
)

CONVERSATIONS = (
    case("expect", sized(b"hello", b"Expect: 100-continue"), bounded=OK, sizes=(5,)),
    case("unknown expectation", sized(b"hello", b"Expect: applause"), bounded=OK, sizes=(5,)),
    case("pipelined pair", get() + get(), bounded=(200, 200), sizes=(0, 0)),
    case(
        "pipelined pair with bodies",
        sized(b"hello") + chunked(HELLO),
        bounded=(200, 200),
        sizes=(5, 5),
    ),
    case(
        "pipelined pair, split within the second",
        get() + get()[:20],
        get()[20:],
        bounded=(200, 200),
        sizes=(0, 0),
    ),
    case("one hundred pipelined", get() * 100, bounded=OK * 17, granian=OK * 100, sizes=(0,) * 100),
    case(
        "pipelined garbage", get() + b"garbage\r\n\r\n", bounded=OK, granian=(200, 400), sizes=(0,)
    ),
    case(
        "garbage after an answer",
        get(),
        AFTER_THE_ANSWER,
        b"garbage\r\n\r\n",
        bounded=(200, 400),
        sizes=(0,),
    ),
    case(
        "pipelined request with a broken body",
        get() + chunked(b"zz\r\n"),
        bounded=OK,
        granian=(200, 400),
        sizes=(0,),
    ),
    case(
        "more content than declared",
        post(b"Content-Length: 3", body=b"hello\r\n\r\n"),
        bounded=OK,
        granian=(200, 400),
        sizes=(3,),
    ),
    case("request after close", get(b"Connection: close") + SMUGGLED, bounded=OK, sizes=(0,)),
    case("upgrade offer without a body", get(*UPGRADE), bounded=OK, sizes=(0,)),
    case("upgrade offer with a body", sized(b"hello", *UPGRADE), bounded=OK, sizes=(5,)),
    case(
        "upgrade offer with a body in a second segment",
        post(*UPGRADE, b"Content-Length: 5"),
        b"hello",
        bounded=OK,
        sizes=(5,),
    ),
    case(
        "upgrade offer with a request as its body",
        sized(SMUGGLED, *UPGRADE),
        bounded=OK,
        sizes=(len(SMUGGLED),),
    ),
    case(
        "upgrade offer with a request as its body in a second segment",
        post(*UPGRADE, b"Content-Length: %d" % len(SMUGGLED)),
        SMUGGLED,
        bounded=OK,
        sizes=(len(SMUGGLED),),
    ),
    case(
        "websocket offer",
        get(
            b"Connection: Upgrade",
            b"Upgrade: websocket",
            b"Sec-WebSocket-Version: 13",
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ),
        bounded=OK,
        sizes=(0,),
    ),
)

CUT_SHORT = (
    case("nothing, then end", bounded=CUT, is_half_closed=True),
    case("half a head, then end", get()[:20], bounded=CUT, is_half_closed=True),
    case(
        "half a sized body, then end",
        sized(b"hello")[:-2],
        bounded=CUT,
        granian=BAD,
        is_half_closed=True,
    ),
    case(
        "half a chunk, then end", chunked(b"5\r\nhe"), bounded=CUT, granian=BAD, is_half_closed=True
    ),
    case(
        "no last chunk, then end",
        chunked(b"5\r\nhello\r\n"),
        bounded=CUT,
        granian=BAD,
        is_half_closed=True,
    ),
    case(
        "half a last chunk, then end",
        chunked(b"5\r\nhello\r\n0\r\n"),
        bounded=CUT,
        granian=BAD,
        is_half_closed=True,
    ),
    case(
        "no body, then end",
        post(b"Content-Length: 5"),
        bounded=CUT,
        granian=BAD,
        is_half_closed=True,
    ),
    case("half a chunk, then garbage", chunked(b"5\r\nhe"), b"llo!!!\r\n", bounded=BAD),
)

STALLS = (
    case("silence", bounded=CUT),
    case("half a head, then silence", get()[:20], bounded=(408,), granian=CUT),
    case("empty lines, then silence", b"\r\n\r\n", bounded=(408,), granian=CUT),
    case("half a sized body, then silence", sized(b"hello")[:-2], bounded=(408,)),
    case("half a chunk, then silence", chunked(b"5\r\nhe"), bounded=(408,)),
    case("half a trailer, then silence", chunked(b"5\r\nhello\r\n0\r\nX-Tr"), bounded=(408,)),
    case("half a second head, then silence", get() + get()[:20], bounded=OK, sizes=(0,)),
    case(
        "a head drop by drop",
        *(bytes([byte]) for byte in get(b"X-A: " + b"a" * 2000)),
        bounded=(408,),
        granian=CUT,
    ),
)

CASES = (*SOUND, *FRAMING, *HEADS, *CONVERSATIONS, *CUT_SHORT, *STALLS)
