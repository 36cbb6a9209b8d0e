"""Every way to send something that is not the JSON that was asked for, through the gateway."""

import asyncio
import json
import random
from collections.abc import Iterable, Iterator

import httpx2
import pytest
import pytest_asyncio

from tests.api.test_edge_envelope import PROJECTS, refusal
from tests.support import seeds
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import database, database_url, gateway, org, settings
from tollhouse.contract.decoding import DEPTH_MAX, ELEMENTS_MAX, MEMBERS_MAX

__all__ = ["database", "database_url", "gateway", "org", "settings"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"content-type": "application/json"}


def named(value: bytes) -> bytes:
    return b'{"name":' + value + b"}"


def beside(value: bytes) -> bytes:
    """A sound name, and another member that would be unknown if it could be read."""
    return b'{"name":"x","other":' + value + b"}"


NOT_JSON = {
    "nothing": b"",
    "blanks": b" \t\r\n",
    "null": b"null",
    "a truth value": b"true",
    "a number": b"1",
    "a string": b'"name"',
    "an array": b"[]",
    "an array of what was asked for": b'[{"name":"x"}]',
    "an array in which an object is unfolded": b'["name","x"]',
    "cut after the brace": b"{",
    "cut in the name": b'{"na',
    "cut after the colon": b'{"name":',
    "cut in the value": b'{"name":"x',
    "cut before the end": b'{"name":"x"',
    "two documents": b'{"name":"x"}{"name":"y"}',
    "two lines of JSON": b'{"name":"x"}\n{"name":"y"}',
    "text after the end": b'{"name":"x"} x',
    "a comma after the end": b'{"name":"x"},',
    "a bracket too many": b'{"name":"x"}}',
    "a trailing comma": b'{"name":"x",}',
    "a leading comma": b'{,"name":"x"}',
    "two commas": b'{"name":"x",,"other":1}',
    "no comma": b'{"name":"x" "other":1}',
    "an equals sign": b'{"name"="x"}',
    "no colon": b'{"name" "x"}',
    "no value": b'{"name":}',
    "brackets crossed": b'{"name":["x"}]',
    "single quotes": b"{'name':'x'}",
    "no quotes": b"{name:x}",
    "a number for a name": b'{1:"x"}',
    "a comment": b'{"name":"x"/* */}',
    "a comment to the end of the line": b'{"name":"x"}//',
    "a hash": b'#\n{"name":"x"}',
    "a guard against inclusion": b')]}\'\n{"name":"x"}',
    "a form": b"name=x",
    "XML": b"<name>x</name>",
    "NaN": beside(b"NaN"),
    "Infinity": beside(b"Infinity"),
    "minus Infinity": beside(b"-Infinity"),
    "too large a number": beside(b"1e999"),
    "too small a number": beside(b"-1e999"),
    "a leading zero": beside(b"01"),
    "a plus sign": beside(b"+1"),
    "no digit before the point": beside(b".5"),
    "no digit after the point": beside(b"1."),
    "no exponent": beside(b"1e"),
    "two points": beside(b"1.2.3"),
    "a hexadecimal number": beside(b"0x10"),
    "a lone minus": beside(b"-"),
    "an underscore in a number": beside(b"1_000"),
    "a number of 5000 digits": beside(b"1" * 5_000),
    "True": beside(b"True"),
    "None": beside(b"None"),
    "undefined": beside(b"undefined"),
    "nul": beside(b"nul"),
    "a byte order mark": b'\xef\xbb\xbf{"name":"x"}',
    "UTF-16": '{"name":"x"}'.encode("utf-16"),
    "UTF-16, little end first": '{"name":"x"}'.encode("utf-16-le"),
    "UTF-16, big end first": '{"name":"x"}'.encode("utf-16-be"),
    "UTF-32": '{"name":"x"}'.encode("utf-32"),
    "Latin-1": '{"name":"ä"}'.encode("latin-1"),
    "a byte that is no UTF-8": named(b'"\xff"'),
    "a continuation without a beginning": named(b'"\x80"'),
    "a beginning without a continuation": named(b'"\xc3"'),
    "an overlong NUL": named(b'"\xc0\x80"'),
    "an overlong slash": named(b'"\xe0\x80\xaf"'),
    "a surrogate in UTF-8": named(b'"\xed\xa0\x80"'),
    "a pair of surrogates in UTF-8": named(b'"\xed\xa0\xbd\xed\xb8\x80"'),
    "beyond the last character": named(b'"\xf4\x90\x80\x80"'),
    "no UTF-8 in a name": b'{"\xff":1,"name":"x"}',
    "no UTF-8 between values": b'{"name":\xff"x"}',
    "a lone high surrogate": named(rb'"\ud800"'),
    "a lone low surrogate": named(rb'"\udc00"'),
    "surrogates the wrong way round": named(rb'"\udc00\ud800"'),
    "a high surrogate before a letter": named(rb'"\ud800x"'),
    "a lone surrogate in a name": b'{"\\ud800":1,"name":"x"}',
    "NUL as an escape": named(rb'"a\u0000b"'),
    "NUL as an escape in a name": b'{"\\u0000":1,"name":"x"}',
    "NUL after an escaped backslash": named(rb'"\\\u0000"'),
    "NUL as a byte": named(b'"a\0b"'),
    "NUL after the end": b'{"name":"x"}\0',
    "a raw line break": named(b'"a\nb"'),
    "a raw tab": named(b'"a\tb"'),
    "a raw control character": named(b'"a\x1fb"'),
    "an unknown escape": named(rb'"\x41"'),
    "an escaped apostrophe": named(rb'"\'"'),
    "a short escape": named(rb'"\u12"'),
    "an escape of no number": named(rb'"\u12g4"'),
    "a backslash at the end": named(rb'"\"'),
    "a no-break space between values": b'{"name":\xc2\xa0"x"}',
    "a form feed between values": b'{"name":\x0c"x"}',
    "one level too deep": beside(b"[" * DEPTH_MAX + b"]" * DEPTH_MAX),
    "objects one level too deep": beside(b'{"a":' * DEPTH_MAX + b"1" + b"}" * DEPTH_MAX),
    "1100 levels": beside(b"[" * 1_100 + b"]" * 1_100),
    "100,000 levels": beside(b"[" * 100_000 + b"]" * 100_000),
    "100,000 levels that do not end": b"[" * 100_000,
    "100,000 objects that do not end": b'{"a":' * 100_000,
    "100,000 ends": b"]" * 100_000,
    "one element too many": beside(b"[" + b"0," * ELEMENTS_MAX + b"0]"),
    "a million duplicates": b'{"name":"x"' + b',"name":"x"' * 1_000_000 + b"}",
    "a name twice": b'{"name":"a","name":"b"}',
    "a name twice with the same value": b'{"name":"a","name":"a"}',
    "a name twice, once by escapes": b'{"name":"a","n\\u0061me":"b"}',
    "an unknown name twice": b'{"name":"x","y":1,"y":2}',
    "a name twice far inside": beside(b'[{"a":[{"b":1,"b":2}]}]'),
    "an empty name twice": b'{"name":"x","":1,"":2}',
}

WRONG_JSON = {
    "no member": (b"{}", "missing_required_parameter", "name"),
    "null": (named(b"null"), "invalid_type", "name"),
    "a truth value": (named(b"true"), "invalid_type", "name"),
    "an integer": (named(b"1"), "invalid_type", "name"),
    "a number": (named(b"1.0"), "invalid_type", "name"),
    "two to the 64th": (named(b"18446744073709551616"), "invalid_type", "name"),
    "an array": (named(b'["x"]'), "invalid_type", "name"),
    "an object": (named(b'{"name":"x"}'), "invalid_type", "name"),
    "an empty text": (named(b'""'), "string_below_min_length", "name"),
    "201 characters": (named(b'"' + b"x" * 201 + b'"'), "string_above_max_length", "name"),
    "a blank": (named(b'" "'), "invalid_value", "name"),
    "a no-break space": (named(rb'"\u00a0"'), "invalid_value", "name"),
    "a line break": (named(rb'"a\nb"'), "invalid_value", "name"),
    "a delete character": (named(rb'"\u007f"'), "invalid_value", "name"),
    "a control character of Latin-1": (named(rb'"\u0085"'), "invalid_value", "name"),
    "another case": (b'{"Name":"x"}', "unknown_parameter", "Name"),
    "another case beside it": (b'{"name":"x","NAME":"y"}', "unknown_parameter", "NAME"),
    "a blank in the name": (b'{"name ":"x"}', "unknown_parameter", "name "),
    "an empty name": (b'{"":"x"}', "unknown_parameter", ""),
    "a member that only answers have": (b'{"name":"x","id":"y"}', "unknown_parameter", "id"),
    "a member of every object in some languages": (
        b'{"name":"x","__proto__":{}}',
        "unknown_parameter",
        "__proto__",
    ),
    "as deep as allowed": (
        beside(b"[" * (DEPTH_MAX - 1) + b"]" * (DEPTH_MAX - 1)),
        "unknown_parameter",
        "other",
    ),
    "as many members as allowed": (
        b'{"name":"x",' + b",".join(b'"%d":0' % number for number in range(MEMBERS_MAX - 1)) + b"}",
        "unknown_parameter",
        "0",
    ),
    "a name of a million characters": (
        b'{"' + b"y" * 1_000_000 + b'":1}',
        "unknown_parameter",
        "y" * 200,
    ),
}

SOUND = {
    "plain": (b'{"name":"x"}', "x"),
    "blanks around everything": (b' \r\n\t{ "name" : "x" }\r\n', "x"),
    "escapes": (rb'{"n\u0061me":"\u0078\/\"\\"}', 'x/"\\'),
    "a pair of surrogates": (rb'{"name":"\ud83d\ude00"}', "\N{GRINNING FACE}"),
    "200 characters of four bytes": (
        named(b'"' + "\N{GRINNING FACE}".encode() * 200 + b'"'),
        "\N{GRINNING FACE}" * 200,
    ),
    "punctuation of JSON in a text": (rb'{"name":"{[\":,]}"}', '{[":,]}'),
    "the text of an escape of NUL": (rb'{"name":"\\u0000"}', r"\u0000"),
    "a noncharacter": (b'{"name":"\xef\xbf\xbf"}', "\uffff"),
}


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway: Gateway, org: OrganizationFixture) -> httpx2.AsyncClient:
    admin = await org.admin_key()
    return gateway.client(admin.value)


async def send(client: httpx2.AsyncClient, path: str, body: bytes, key: object) -> httpx2.Response:
    headers = {**JSON, "Idempotency-Key": f"creation {key}"}
    return await client.post(path, content=body, headers=headers)


async def send_all(
    client: httpx2.AsyncClient, path: str, bodies: Iterable[bytes]
) -> list[httpx2.Response]:
    """Each with a creation of its own; the answers in the order of the bodies."""
    sending = (send(client, path, body, number) for number, body in enumerate(bodies))
    return await asyncio.gather(*sending)


async def test_what_is_not_json_is_refused_and_creates_nothing(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    project = await org.project()
    keys = f"/v1/organization/projects/{project.id}/api_keys"

    async with client:
        at_projects = await send_all(client, PROJECTS, NOT_JSON.values())
        at_keys = await send_all(client, keys, NOT_JSON.values())
        projects = (await client.get(PROJECTS)).json()["data"]
        created_keys = (await client.get(f"{PROJECTS}/{project.id}/api_keys")).json()["data"]

    expected = dict.fromkeys(NOT_JSON, (400, "invalid_json"))
    assert dict(zip(NOT_JSON, map(refusal, at_projects), strict=True)) == expected
    assert dict(zip(NOT_JSON, map(refusal, at_keys), strict=True)) == expected
    assert [item["id"] for item in projects] == [str(project.id)]
    assert created_keys == []


async def test_json_that_is_not_what_was_asked_for_is_refused_by_name(
    client: httpx2.AsyncClient,
) -> None:
    bodies = [body for body, _, _ in WRONG_JSON.values()]

    async with client:
        answers = await send_all(client, PROJECTS, bodies)
        projects = (await client.get(PROJECTS)).json()["data"]

    told = [(*refusal(answer), answer.json()["error"]["param"]) for answer in answers]
    assert dict(zip(WRONG_JSON, told, strict=True)) == {
        case: (400, code, param) for case, (_, code, param) in WRONG_JSON.items()
    }
    assert projects == []


async def test_sound_json_is_taken_in_every_spelling(client: httpx2.AsyncClient) -> None:
    async with client:
        answers = await send_all(client, PROJECTS, [body for body, _ in SOUND.values()])

    taken = [answer.json().get("name") for answer in answers]
    assert dict(zip(SOUND, taken, strict=True)) == {case: name for case, (_, name) in SOUND.items()}


async def test_refusals_do_not_repeat_what_was_sent(client: httpx2.AsyncClient) -> None:
    secret = b"thp_abcdefghijklmnopqrstuvwxyz"

    bodies = (
        named(b'"' + secret + b'\\n"'),
        named(b'"' + secret * 10 + b'"'),
        named(b'["' + secret + b'"]'),
        named(b'"' + secret),
        beside(b'"' + secret + b'"'),
    )

    async with client:
        answers = await send_all(client, PROJECTS, bodies)

    assert {answer.status_code for answer in answers} == {400}
    for answer in answers:
        assert secret.decode() not in answer.text


def broken_bodies(chance: random.Random, count: int) -> Iterator[bytes]:
    """A sound body with a few of its bytes changed, doubled or removed."""
    alphabet = b'{}[]":,\\u0n1e-+. \x00\x1f\x7f\x80\xc3\xed\xff'
    for _ in range(count):
        body = bytearray(b'{"name":"a\\u0041\\ud83d\\ude00b c"}')
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(body))
            length = chance.choice((0, 1, 1, 8))
            body[place : place + length] = bytes(
                chance.choices(alphabet, k=chance.choice((0, 1, 1, 3)))
            )
        yield bytes(body)


async def test_whatever_is_sent_is_created_as_other_readers_read_it_or_refused(
    client: httpx2.AsyncClient,
) -> None:
    bodies = list(broken_bodies(seeds.chance(), count=600))

    async with client:
        answers = await send_all(client, PROJECTS, bodies)

    assert {answer.status_code for answer in answers} == {200, 400}
    for body, answer in zip(bodies, answers, strict=True):
        if answer.status_code == 200:
            assert answer.json()["name"] == json.loads(body)["name"], body
        else:
            assert refusal(answer)[0] == 400, body
