"""Query strings: strictly decoded, typed, and lists in all three spellings."""

from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Struct

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import decoding
from tollhouse.contract.costs import CostsQuery
from tollhouse.contract.listing import AdminKeysQuery, ListQuery, NoQuery

ID = "11111111-1111-4111-8111-111111111111"


def outcome(raw: bytes, type_: type[Struct] = CostsQuery) -> tuple[str, str | None]:
    try:
        decoding.decode_query(raw, type_, ignores_unknown=False)
    except InvalidRequest as refusal:
        return refusal.code, refusal.param
    return "accepted", None


def projects(raw: bytes) -> object:
    query = decoding.decode_query(b"start_time=0&" + raw, CostsQuery, ignores_unknown=False)
    return query.project_ids


def test_defaults_hold_where_nothing_is_sent() -> None:
    listed = decoding.decode_query(b"", ListQuery, ignores_unknown=False)
    keys = decoding.decode_query(b"", AdminKeysQuery, ignores_unknown=False)
    report = decoding.decode_query(b"start_time=5", CostsQuery, ignores_unknown=False)

    assert listed == ListQuery(after=UNSET, limit=20)
    assert keys == AdminKeysQuery(after=UNSET, limit=20, order="asc")
    assert report == CostsQuery(start_time=5, bucket_width="1d", limit=7)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"project_ids=a", ["a"]),
        (b"project_ids=a&project_ids=b", ["a", "b"]),
        (b"project_ids=a,b", ["a", "b"]),
        (b"project_ids=a%2Cb", ["a", "b"]),
        (b"project_ids[]=a&project_ids[]=b", ["a", "b"]),
        (b"project_ids%5B%5D=a&project_ids%5B%5D=b", ["a", "b"]),
        (b"project_ids=b,a&project_ids[]=c&project_ids=a,d", ["b", "a", "c", "d"]),
        (b"", UNSET),
    ],
)
def test_a_list_is_read_in_each_spelling_and_merged(raw: bytes, expected: object) -> None:
    assert projects(raw) == expected


def test_items_are_counted_after_repeats_are_dropped() -> None:
    hundred = ",".join(f"p{number}" for number in range(100)).encode()

    assert len(projects(b"project_ids=" + hundred + b"&project_ids[]=" + hundred)) == 100  # pyright: ignore[reportArgumentType]
    too_many = b"start_time=0&project_ids=" + hundred + b",one_more"
    assert outcome(too_many) == ("array_above_max_length", "project_ids")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"start_time=0", ("accepted", None)),
        (b"start_time=0&&", ("accepted", None)),
        (b"", ("missing_required_parameter", "start_time")),
        (b"start_time", ("invalid_type", "start_time")),
        (b"start_time=", ("invalid_type", "start_time")),
        (b"start_time=-1", ("integer_below_min_value", "start_time")),
        (b"start_time=1.0", ("invalid_type", "start_time")),
        (b"start_time=1e3", ("invalid_type", "start_time")),
        (b"start_time=+1", ("invalid_type", "start_time")),
        (b"start_time=%2B1", ("invalid_type", "start_time")),
        (b"start_time=1_000", ("invalid_type", "start_time")),
        (b"start_time=%D9%A1", ("invalid_type", "start_time")),
        (b"start_time=true", ("invalid_type", "start_time")),
        (b"start_time=1%0A", ("invalid_type", "start_time")),
        (b"start_time=" + b"9" * 4300, ("integer_above_max_value", "start_time")),
        (b"start_time=" + b"9" * 5000, ("invalid_type", "start_time")),
        (b"start_time=253402300799", ("accepted", None)),
        (b"start_time=253402300800", ("integer_above_max_value", "start_time")),
        (b"start_time=0&start_time=0", ("invalid_value", "start_time")),
        (b"start_time=0&start_time[]=1", ("unknown_parameter", "start_time[]")),
        (b"start_time=0&end_time=9", ("accepted", None)),
        (b"start_time=0&end_time=-9", ("integer_below_min_value", "end_time")),
        (b"start_time=0&limit=180", ("accepted", None)),
        (b"start_time=0&limit=181", ("integer_above_max_value", "limit")),
        (b"start_time=0&limit=0", ("integer_below_min_value", "limit")),
        (b"start_time=0&page=" + b"x" * 500, ("accepted", None)),
        (b"start_time=0&page=" + b"x" * 501, ("string_above_max_length", "page")),
        (b"start_time=0&page=", ("string_below_min_length", "page")),
        (b"start_time=0&bucket_width=1d", ("accepted", None)),
        (b"start_time=0&bucket_width=1h", ("invalid_value", "bucket_width")),
        (b"start_time=0&group_by=project_id,api_key_id,line_item", ("accepted", None)),
        (b"start_time=0&group_by=line_item,line_item", ("accepted", None)),
        (b"start_time=0&group_by=model", ("invalid_value", "group_by[0]")),
        (b"start_time=0&project_ids=a,,b", ("string_below_min_length", "project_ids[1]")),
        (b"start_time=0&project_ids=", ("string_below_min_length", "project_ids[0]")),
        (b"start_time=0&line_items=x", ("unknown_parameter", "line_items")),
        (b"start_time=0&START_TIME=0", ("unknown_parameter", "START_TIME")),
        (b"start_time=0&" + b"z" * 1000 + b"=1", ("unknown_parameter", "z" * 200)),
    ],
)
def test_the_query_of_costs_is_strict(raw: bytes, expected: tuple[str, str | None]) -> None:
    assert outcome(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"limit=100&after=" + ID.encode(), ("accepted", None)),
        (b"limit=101", ("integer_above_max_value", "limit")),
        (b"limit=0", ("integer_below_min_value", "limit")),
        (b"limit=1", ("accepted", None)),
        (b"after=", ("string_below_min_length", "after")),
        (b"after=" + "é".encode() * 200, ("accepted", None)),
        (b"after=" + b"x" * 201, ("string_above_max_length", "after")),
        (b"order=desc", ("accepted", None)),
        (b"order=up", ("invalid_value", "order")),
        (b"after=a&after=b", ("invalid_value", "after")),
    ],
)
def test_the_query_of_admin_keys_is_strict(raw: bytes, expected: tuple[str, str | None]) -> None:
    assert outcome(raw, AdminKeysQuery) == expected


@pytest.mark.parametrize(
    "raw",
    [
        b"after=%",
        b"after=%4",
        b"after=%zz",
        b"after=%ff",
        b"after=\xff",
        b"a=%00",
        b"%ff",
        b"%ED%A0%80",
    ],
)
def test_text_that_cannot_be_decoded_is_refused_even_where_unknown_is_ignored(raw: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        decoding.decode_query(raw, ListQuery, ignores_unknown=True)

    assert (refused.value.code, refused.value.param) == ("invalid_value", None)


def test_unknown_parameters_can_be_ignored() -> None:
    query = decoding.decode_query(b"beta=true&beta=false", NoQuery, ignores_unknown=True)

    assert query == NoQuery()


def test_an_operation_without_parameters_notices_unknown_ones() -> None:
    assert outcome(b"limit=1", NoQuery) == ("unknown_parameter", "limit")


def test_a_plus_sign_is_a_blank_as_forms_write_it() -> None:
    query = decoding.decode_query(b"after=a+b%2Bc", ListQuery, ignores_unknown=False)

    assert query.after == "a b+c"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
@settings(max_examples=100)
def test_what_a_client_encodes_arrives_as_it_was(text: str) -> None:
    cursor = text[:200]
    raw = urlencode({"after": cursor}).encode()

    assert decoding.decode_query(raw, ListQuery, ignores_unknown=False).after == cursor


@given(st.binary())
@settings(max_examples=300)
def test_any_bytes_are_a_query_or_refused(raw: bytes) -> None:
    assert isinstance(outcome(raw, ListQuery)[0], str)
