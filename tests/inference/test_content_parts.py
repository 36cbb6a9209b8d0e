"""A content part is forwarded with the members of its type alone, and media carry their data."""

from typing import Any

import msgspec
import pytest

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.chat import ChatRequest, check
from tollhouse.inference.content_parts import (
    data_media_type,
    forwarded_part,
    is_base64,
    is_http_address,
    misplaced_media,
    unsafe_member,
    with_forwarded_parts,
)
from tollhouse.ledger.bounds import chat_prompt

ADDRESS = "http://169.254.169.254/latest"
DATA = "data:image/png;base64,AAAA"
PIXEL = {"url": DATA}
IMAGE = {"type": "image_url", "image_url": PIXEL}
TEXT = {"type": "text", "text": "x"}

FORWARDED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"type": "text", "text": ""}),
    ({"text": "x"}, TEXT),
    ({"type": None, "text": "x"}, TEXT),
    ({"type": "text", "text": None}, {"type": "text", "text": ""}),
    ({**TEXT, "zzz": 1, "cache_control": {"type": "ephemeral"}}, TEXT),
    ({**TEXT, "uuid": "a", "image_url": {"url": ADDRESS}}, TEXT),
    ({**TEXT, "image_url": 5}, TEXT),
    ({"type": "refusal", "refusal": "no", "text": "x"}, {"type": "refusal", "refusal": "no"}),
    ({"type": "refusal", "refusal": {"url": ADDRESS}}, {"type": "refusal", "refusal": ""}),
    ({"image_url": DATA}, IMAGE),
    ({"type": "image_url", "image_url": DATA, "uuid": "a", "video_url": ADDRESS}, IMAGE),
    ({"type": "image_url", "image_url": {**PIXEL, "fallback": ADDRESS}}, IMAGE),
    (
        {"type": "image_url", "image_url": {"url": [ADDRESS]}},
        {"type": "image_url", "image_url": {}},
    ),
    (
        {"type": "image_url", "image_url": {**PIXEL, "detail": "low"}},
        {"type": "image_url", "image_url": {**PIXEL, "detail": "low"}},
    ),
    ({"type": "image_url", "image_url": {**PIXEL, "detail": "a long text"}}, IMAGE),
    (
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav", "url": ADDRESS}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ),
    (
        {"type": "file", "file": {"file_data": "AA==", "filename": "ä 1.pdf", "file_url": ADDRESS}},
        {"type": "file", "file": {"file_data": "AA==", "filename": "ä 1.pdf"}},
    ),
    ({"type": "file", "file": {"file_id": "file-of-another"}}, {"type": "file", "file": {}}),
    ({"audio_url": {"url": ADDRESS}}, {"type": "audio_url"}),
    ({"type": "zzz", "zzz": ADDRESS}, {"type": "zzz"}),
]


@pytest.mark.parametrize(("part", "becomes"), FORWARDED)
def test_only_the_members_of_a_part_s_type_are_forwarded(
    part: dict[str, Any], becomes: dict[str, Any]
) -> None:
    assert forwarded_part(part, "part") == becomes
    assert forwarded_part(becomes, "part") == becomes


@pytest.mark.parametrize(
    "part",
    [
        {"text": "x", "image_url": PIXEL},
        {"image_url": PIXEL, "audio_url": ADDRESS},
        {"image_url": PIXEL, "video_url": ADDRESS, "type": None},
    ],
)
def test_a_part_without_a_type_holds_one_kind_of_content(part: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        forwarded_part(part, "messages[0].content[0]")

    assert (refusal.value.code, refusal.value.param) == ("invalid_value", "messages[0].content[0]")


@pytest.mark.parametrize(
    "url",
    [
        *(ADDRESS, "//host/a", "file:///etc/passwd", "DATA:image/png;base64,AA", "data:,x", ""),
        *(" data:image/png;base64,AA", "\x00http://a", "data:image/png,AA", "data:;base64,AA"),
        *("data:http://a;base64,AA", "ftp://a/b", "blob:http://a", "data:image/png;base64"),
    ],
)
@pytest.mark.parametrize("kind", ["image_url", "video_url"])
def test_what_is_no_data_url_is_not_safe(kind: str, url: str) -> None:
    part = forwarded_part({"type": kind, kind: {"url": url}}, "part")

    assert unsafe_member(part, fetches_media=False) == kind
    assert (unsafe_member(part, fetches_media=True) is None) is (url == ADDRESS)


def test_a_data_url_may_have_parameters() -> None:
    office = "application/vnd.openxmlformats-officedocument"

    assert data_media_type(DATA) == "image/png"
    assert data_media_type("data:Image/SVG+xml;charset=utf-8;base64,AA") == "image/svg+xml"
    assert data_media_type(f"data:{office};base64,AA") == office


@pytest.mark.parametrize(
    ("part", "misplaced"),
    [
        (IMAGE, None),
        ({"type": "image_url", "image_url": {"url": "data:IMAGE/webp;base64,AA"}}, None),
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.pdf"}}, None),
        ({"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA"}}, None),
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64,AA"}}, None),
        ({"type": "file", "file": {"file_data": "data:text/html;base64,AA"}}, None),
        ({"type": "file", "file": {"file_data": "AAAA"}}, None),
        *[
            (
                {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,AA"}},
                ("image_url", media_type.lower()),
            )
            for media_type in (
                *("application/pdf", "video/mp4", "audio/wav", "text/html"),
                *("image/svg+xml", "IMAGE/SVG+XML", "imagery/png"),
            )
        ],
        (
            {"type": "video_url", "video_url": {"url": DATA}},
            ("video_url", "image/png"),
        ),
        *[
            (
                {"type": "file", "file": {"file_data": f"data:{media_type};base64,AA"}},
                ("file.file_data", media_type),
            )
            for media_type in ("image/png", "image/svg+xml", "video/mp4", "audio/wav")
        ],
    ],
)
def test_data_stands_in_a_part_of_its_own_kind(
    part: dict[str, Any], misplaced: tuple[str, str] | None
) -> None:
    assert misplaced_media(forwarded_part(part, "part")) == misplaced


@pytest.mark.parametrize(
    ("value", "is_data"),
    [
        *(("", True), ("AA==", True), ("JVBERi0xLjQ=", True), ("A" * 100_000, True)),
        *(("AA", False), ("/etc/passwd", False), ("A=AA", False), ("A===", False)),
        *(("//example.org/aa", False), ("http:AAA", False), ("AAAA AAA", False), (5, False)),
        *(("./" + "A" * 99_998, False), ("A" * 99_992 + ".example", False)),
    ],
)
def test_plain_base64_has_its_alphabet_and_whole_blocks(value: object, is_data: bool) -> None:
    assert is_base64(value) is is_data


@pytest.mark.parametrize("name", [ADDRESS, "/etc/passwd", "a\\b", "a:b", "a\nb", "", "a" * 256])
def test_what_describes_media_has_a_plain_form_or_is_not_forwarded(name: str) -> None:
    file = {"type": "file", "file": {"file_data": "AA==", "filename": name}}
    sound = {"type": "input_audio", "input_audio": {"data": "AA==", "format": name}}

    assert forwarded_part(file, "part")["file"] == {"file_data": "AA=="}
    assert forwarded_part(sound, "part")["input_audio"] == {"data": "AA=="}


@pytest.mark.guarantee("T33")
@pytest.mark.parametrize(
    ("url", "is_address"),
    [
        ("https://example.org/a.png?b=c", True),
        ("https://example.org/é.png", True),
        ("https://example.org/a b", False),
        ("https://example.org/a\nb", False),
        (" https://example.org/a", False),
        ("file:///etc/passwd", False),
        ("HTTP://example.org", False),
    ],
)
def test_only_plain_http_addresses_are_fetched(url: str, is_address: bool) -> None:
    assert is_http_address(url) is is_address


@pytest.mark.guarantee("T33")
@pytest.mark.parametrize(
    ("part", "member"),
    [
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64,AA"}}, None),
        ({"type": "file", "file": {"file_data": "JVBERi0xLjQ="}}, None),
        ({"type": "file", "file": {"file_data": ADDRESS}}, "file.file_data"),
        ({"type": "file", "file": {"file_data": "//example.org/a"}}, "file.file_data"),
        ({"type": "file", "file": {"file_id": "f"}}, "file.file_data"),
        ({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}, None),
        ({"type": "input_audio", "input_audio": {"data": ADDRESS}}, "input_audio.data"),
        ({"type": "input_audio", "input_audio": 5}, "input_audio.data"),
    ],
)
def test_files_and_sound_are_never_fetched(part: dict[str, Any], member: str | None) -> None:
    forwarded = forwarded_part(part, "part")

    assert unsafe_member(forwarded, fetches_media=True) == member


def chat(**fields: object) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **fields}
    request = msgspec.convert(body, ChatRequest)
    check(request)
    return with_forwarded_parts(request)


def test_every_role_and_the_prediction_have_forwarded_parts() -> None:
    hidden = {**TEXT, "image_url": ADDRESS}
    roles = ("system", "developer", "user", "assistant", "tool")

    request = chat(
        messages=[{"role": role, "content": [hidden]} for role in roles],
        prediction={"type": "content", "content": [hidden]},
    )

    assert [message.content for message in request.messages] == [[TEXT]] * len(roles)
    assert request.prediction == {"type": "content", "content": [TEXT]}


def test_a_request_without_parts_stays_the_same_object() -> None:
    request = msgspec.convert(
        {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, ChatRequest
    )

    assert with_forwarded_parts(request) is request


@pytest.mark.parametrize("parts", [["x"], [5], [{"type": 1}]])
def test_the_parts_of_a_prediction_are_objects(parts: list[Any]) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        chat(prediction={"type": "content", "content": parts})

    assert refusal.value.param == "prediction.content[0]"


@pytest.mark.parametrize(
    "part",
    [
        {"image_url": DATA},
        {"image_url": DATA, "uuid": "a", "cache_control": {}},
        {"type": "image_url", "image_url": DATA, "text": "x", "refusal": "x"},
        {**IMAGE, "input_audio": {"data": "AA=="}},
    ],
)
def test_whatever_is_forwarded_as_an_image_is_priced_as_one(part: dict[str, Any]) -> None:
    request = chat(messages=[{"role": "user", "content": [part]}])

    prompt = chat_prompt(request)

    assert request.messages[0].content == [IMAGE]
    assert (prompt.images, prompt.is_open) == (1, False)
