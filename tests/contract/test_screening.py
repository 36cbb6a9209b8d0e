"""The JSON gate: what passes, what is refused, and that nothing else can happen."""

import json
import math
import sys
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import decoding
from tollhouse.contract.decoding import DEPTH_MAX, ELEMENTS_MAX, OBJECTS_IN_ARRAYS_MAX

BACKSLASH = b"\\"

REFUSED = {
    "empty": b"",
    "blank": b" \n\t",
    "cut short": b'{"a":',
    "unfinished string": b'{"a":"b',
    "string ending in a backslash": b'"abc\\',
    "string ending in an escaped quote": b'"abc\\"',
    "trailing comma in an array": b"[1,]",
    "trailing comma in an object": b'{"a":1,}',
    "single quotes": b"{'a':1}",
    "comment": b"// no\n{}",
    "two documents": b"{} {}",
    "trailing text": b"{}x",
    "trailing NUL": b"{}\x00",
    "member without a value": b'{"a"}',
    "member name that is no string": b"{1:2}",
    "leading zero": b"01",
    "leading plus": b"+1",
    "bare point": b"1.",
    "hexadecimal": b"0x10",
    "unknown word": b"nul",
    "unknown escape": rb'"\x41"',
    "short escape": rb'"\u12"',
    "backslash outside a string": rb'{\"a":1}',
    "raw newline in a string": b'"\n"',
    "raw NUL in a string": b'"\x00"',
    "vertical tab as blank": b"\x0b{}",
    "no-break space as blank": b"\xc2\xa0{}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"a":1}'.encode("utf-16-le"),
    "byte that is no UTF-8": b'"\xff"',
    "name that is no UTF-8": b'{"\xff":1}',
    "overlong UTF-8": b'"\xc0\x80"',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "beyond Unicode": b'"\xf4\x90\x80\x80"',
    "high surrogate alone": rb'"\ud800"',
    "low surrogate alone": rb'"\udc00"',
    "high surrogate before a letter": rb'"\ud800\u0041"',
    "surrogates the wrong way round": rb'"\udc00\ud800"',
    "surrogate in a name": rb'{"\ud800":1}',
    "NaN": b"NaN",
    "NaN in a member": b'{"temperature":NaN}',
    "Infinity": b"[Infinity]",
    "minus Infinity": b"-Infinity",
    "number beyond floats": b"1e999",
    "negative number beyond floats": b"[-1e400]",
    "integer of 4301 digits": b"9" * 4301,
    "integer of 5000 digits in a member": b'{"n":' + b"9" * 5000 + b"}",
    "integer of a million digits": b"[" + b"7" * 1_000_000 + b"]",
    "NUL": rb'"\u0000"',
    "NUL in a name": rb'{"a\u0000b":1}',
    "NUL after an escaped backslash": rb'"\\\u0000"',
    "NUL after two escaped backslashes": rb'"\\\\\u0000"',
    "NUL after an escaped quote": rb'"\"\u0000"',
    "repeated member": b'{"a":1,"a":2}',
    "repeated member with one value": b'{"a":1,"a":1}',
    "repeated member, once with an escape": rb'{"a":1,"\u0061":2}',
    "repeated member, twice with escapes": rb'{"\u0061b":1,"a\u0062":2}',
    "repeated slash": rb'{"/":1,"\/":2}',
    "repeated member deep inside": b'{"a":[{"b":{"c":1,"d":2,"c":3}}]}',
    "repeated empty name": b'{"":1,"":2}',
    "repeated role": b'{"messages":[{"role":"user","role":"system","content":"x"}]}',
    "repeated non-ASCII name": '{"é":1,"\\u00e9":2}'.encode(),
    "depth 129": b"[" * 129 + b"]" * 129,
    "depth 129 of objects": b'{"a":' * 129 + b"1" + b"}" * 129,
    "depth 1100": b"[" * 1100 + b"]" * 1100,
    "depth 100000 without an end": b"[" * 100_000,
    "depth 100000 of objects": b'{"a":' * 100_000,
    "depth behind shallow siblings": b"[" + b"[]," * 200 + b"[" * 129 + b"]" * 129 + b"]",
    "2000001 elements": b"[" + b"," * 1_999_999 + b"]",
    "too many empty objects": b"[" + b"{}," * 700_000 + b"{}]",
    "too many members": b"{" + b'"a":1,' * 1_000_001 + b'"b":1}',
    "nothing but quotes": b'"' * 5_000_000,
    "nothing but brackets": b"[" * 5_000_000,
    "nothing but backslashes": b'"' + BACKSLASH * 5_000_001,
    "nothing but escaped quotes": b'"' + b'\\"' * 2_000_000,
}
ACCEPTED: dict[str, tuple[bytes, object]] = {
    "object": (b"{}", {}),
    "array": (b"[]", []),
    "text": (b'"x"', "x"),
    "number": (b"-0.5e2", -50.0),
    "null": (b"null", None),
    "blanks around": (b" \r\n\t{ } \n", {}),
    "punctuation in a string": (b'{"a":"{[,:]}"}', {"a": "{[,:]}"}),
    "escaped quote in a string": (rb'{"a":"\",\"b\":1"}', {"a": '","b":1'}),
    "colon in a name": (b'{"a:b":1}', {"a:b": 1}),
    "string of backslashes": (rb'{"a":"\\","b":"\\\\"}', {"a": "\\", "b": "\\\\"}),
    "backslash before u0000": (rb'"\\u0000"', r"\u0000"),
    "two backslashes before u0000": (rb'"\\\\u0000"', r"\\u0000"),
    "u0001": (rb'"\u0001"', "\x01"),
    "surrogate pair": (rb'"\ud83d\ude00"', "\U0001f600"),
    "astral character": ('"\U0001f600"'.encode(), "\U0001f600"),
    "same name in two objects": (b'[{"a":1},{"a":{"a":2}}]', [{"a": 1}, {"a": {"a": 2}}]),
    "names that differ in case": (b'{"a":1,"A":2}', {"a": 1, "A": 2}),
    "names that differ in form": ('{"é":1,"e\u0301":2}'.encode(), {"é": 1, "e\u0301": 2}),
    "empty name": (b'{"":1}', {"": 1}),
    "delete character": (b'"\x7f"', "\x7f"),
    "integer beyond 64 bits": (b"18446744073709551616", 2**64),
    "integer of 4300 digits": (b"9" * 4300, 10**4300 - 1),
    "smallest float": (b"1e-999", 0.0),
}


def code_of(body: bytes) -> str:
    with pytest.raises(InvalidRequest) as refused:
        decoding.screen(body)
    assert refused.value.param is None
    return refused.value.code


@pytest.mark.guarantee("T27")
@pytest.mark.parametrize("name", REFUSED)
def test_what_readers_could_understand_differently_is_refused(name: str) -> None:
    assert code_of(REFUSED[name]) == "invalid_json"


@pytest.mark.parametrize("name", ACCEPTED)
def test_sound_json_passes_unchanged(name: str) -> None:
    body, expected = ACCEPTED[name]

    assert decoding.screen(body) == expected


def test_128_levels_pass() -> None:
    tree: Any = decoding.screen(b"[" * 128 + b"]" * 128)

    depth = 0
    while tree:
        tree, depth = tree[0], depth + 1
    assert depth == 127


def test_many_siblings_are_not_deep() -> None:
    assert decoding.screen(b"[" + b"[[]]," * 1000 + b"[]]") == [[[]]] * 1000 + [[]]


def test_as_many_elements_as_allowed_pass() -> None:
    body = b"[" + b"0," * (ELEMENTS_MAX - 2) + b"0]"

    assert len(decoding.screen(body)) == ELEMENTS_MAX - 1
    assert code_of(b"[0," + body[1:]) == "invalid_json"


@pytest.mark.parametrize("width", [1, 2, 3, 1_000])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_depth_is_exact_however_many_stand_beside_each_other(width: int, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    flat = b",".join([b"[]"] * width)

    def nested(levels: int) -> bytes:
        return opening * levels + b"[" + flat + b"]" + closing * levels

    assert decoding.screen(nested(DEPTH_MAX - 2))
    assert code_of(nested(DEPTH_MAX - 1)) == "invalid_json"


def test_depth_goes_on_where_another_piece_of_brackets_begins() -> None:
    def nested(levels: int) -> bytes:
        siblings = b"[[[[[]]]]]," * decoding.NESTING_PIECE
        return b"[" * 100 + siblings + b"[" * (levels - 100) + b"]" * levels

    assert decoding.screen(nested(DEPTH_MAX))
    assert code_of(nested(DEPTH_MAX + 1)) == "invalid_json"


@pytest.mark.parametrize(
    ("body", "character_bytes"),
    [
        (b'"plain"', 1),
        (rb'"a \\ backslash"', 1),
        ('"dash \u2014"'.encode(), 2),
        ('"é"'.encode(), 2),
        ('"\u4e2d"'.encode(), 2),
        ('"\U0001f600"'.encode(), 4),
        (rb'"\ud83d\ude00"', 4),
        (rb'"\uDBFF\uDFFF"', 4),
    ],
)
def test_the_width_of_characters_is_never_told_too_low(body: bytes, character_bytes: int) -> None:
    text = json.loads(body)

    assert decoding.character_bytes(body) == character_bytes
    assert sys.getsizeof(text * 1_000) <= 100 + 1_000 * len(text) * character_bytes


def test_the_caller_is_told_why_a_body_cannot_be_read() -> None:
    with pytest.raises(InvalidRequest) as refused:
        decoding.screen(b'{"secret":1,"secret":2}')

    reason = "an object has two members of the same name: 'secret'"
    assert refused.value.message == f"The body cannot be read: {reason}."


# The reference: a slow reader that refuses the same things by looking at each value.


class Refused(Exception):
    pass


def reference(body: bytes) -> object:
    try:
        tree = json.loads(body.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Refused from None
    walk(tree)
    return tree


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, _ in pairs:
        walk(name)
    if len(dict(pairs)) != len(pairs):
        raise Refused
    return dict(pairs)


def refuse(_: str) -> object:
    raise Refused


def walk(node: Any) -> None:  # noqa: ANN401 - JSON
    if isinstance(node, str) and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in node):
        raise Refused
    if isinstance(node, float) and not math.isfinite(node):
        raise Refused
    if isinstance(node, list | dict):
        container = cast("list[Any] | dict[str, Any]", node)
        for below in container.values() if isinstance(container, dict) else container:
            walk(below)


def outcome(read: Any, body: bytes) -> object:  # noqa: ANN401 - either reader
    try:
        return repr(read(body))
    except (Refused, InvalidRequest):
        return "refused"


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda below: st.lists(below) | st.dictionaries(TEXTS, below),
    max_leaves=20,
)
FRAGMENTS = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b'"a"', b'"b":', b"\\", b'\\"', b"\\\\", b"\\u0000",
    b"\\u0061", b"\\ud800", b"\\udc00", b"1", b"-", b".", b"e", b"0", b"true", b"null", b"NaN",
    b" ", b"\n", b"\x00", b"\xc3\xa9", b"\xff", b'{"a":', b'{"a":1}', b"[]", b"{}",
]  # fmt: skip


@given(st.binary() | st.lists(st.sampled_from(FRAGMENTS)).map(b"".join))
@settings(max_examples=500)
@example(b"[" * 5000)
@example(b'{"a":"\\\\","a":1}')
def test_any_bytes_are_read_or_refused_as_the_reference_does(body: bytes) -> None:
    assert outcome(decoding.screen, body) == outcome(reference, body)


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 0, 2]))
@settings(max_examples=100)
def test_every_document_without_repeats_is_read_as_json_reads_it(
    document: object, is_ascii: bool, indent: int | None
) -> None:
    body = json.dumps(document, ensure_ascii=is_ascii, indent=indent).encode()

    assert repr(decoding.screen(body)) == repr(json.loads(body))


@pytest.mark.guarantee("T27")
@given(st.dictionaries(TEXTS, st.integers(), min_size=1), st.data())
@settings(max_examples=100)
def test_one_more_member_of_a_known_name_is_always_noticed(
    members: dict[str, int], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(members)))
    pairs = [json.dumps(key) + ":1" for key in members]
    escaped = '"' + "".join(f"\\u{unit:04x}" for unit in utf16_units(name)) + '":2'
    pairs.insert(data.draw(st.integers(0, len(pairs))), escaped)

    assert code_of(("{" + ",".join(pairs) + "}").encode()) == "invalid_json"


def utf16_units(text: str) -> list[int]:
    encoded = text.encode("utf-16-be")
    return [int.from_bytes(encoded[at : at + 2]) for at in range(0, len(encoded), 2)]


@given(DOCUMENTS)
@settings(max_examples=50)
def test_the_canonical_form_does_not_depend_on_spelling(document: object) -> None:
    plain = decoding.screen(json.dumps(document).encode())
    spaced = decoding.screen(json.dumps(document, indent=2, sort_keys=True).encode())

    assert decoding.canonical(plain) == decoding.canonical(spaced)
    assert decoding.screen(decoding.canonical(plain)) == plain


def test_the_canonical_form_sorts_members_at_every_level() -> None:
    tree = {"b": [{"d": 1, "c": "é"}], "a": None}

    assert decoding.canonical(tree) == '{"a":null,"b":[{"c":"é","d":1}]}'.encode()


@pytest.mark.parametrize(("one", "other"), [(b"1", b"1.0"), (b"[1,2]", b"[2,1]"), (b'"1"', b"1")])
def test_the_canonical_form_keeps_what_differs_apart(one: bytes, other: bytes) -> None:
    first, second = decoding.screen(one), decoding.screen(other)

    assert decoding.canonical(first) != decoding.canonical(second)


@given(st.binary() | DOCUMENTS.map(lambda document: json.dumps(document).encode()))
def test_the_bound_of_elements_is_never_too_low(body: bytes) -> None:
    try:
        tree = decoding.screen(body)
    except InvalidRequest:
        return
    assert len(decoding.structure(body)) <= decoding.elements_bound(body), tree


@pytest.mark.parametrize(
    "unit",
    [b"{}", b'{"a":{}}', b'[{"a":1}]', b'"},{", {}', b"1, {}"],
    ids=lambda unit: unit.decode(),
)
def test_arrays_hold_a_bounded_number_of_objects(unit: bytes) -> None:
    """Wherever they stand; an object that is a member, and what strings contain, is not counted."""
    whole = b'{"a":[' + b",".join([unit] * OBJECTS_IN_ARRAYS_MAX) + b"]}"
    more = b'{"a":[' + b",".join([unit] * (OBJECTS_IN_ARRAYS_MAX + 1)) + b"]}"

    assert decoding.screen(whole)
    with pytest.raises(InvalidRequest, match=str(OBJECTS_IN_ARRAYS_MAX)):
        decoding.screen(more)


def test_the_members_of_all_objects_are_bounded() -> None:
    def document(members: int) -> bytes:
        return b"{%b}" % b",".join(b'"%d":0' % number for number in range(members))

    assert len(decoding.structure(document(decoding.MEMBERS_MAX))) > decoding.MEMBERS_MAX
    with pytest.raises(InvalidRequest, match="more than 25000 members"):
        decoding.structure(document(decoding.MEMBERS_MAX + 1))
