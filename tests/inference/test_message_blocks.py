"""What of a Messages-shaped input a backend may see that counts its tokens."""

from typing import Any

import msgspec
import pytest

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.errors import MediaTypeRefused, RemoteMediaRefused, UnsupportedOption
from tollhouse.contract.messages import CountTokens
from tollhouse.inference.messages.blocks import forwarded_input

ADDRESS = "http://169.254.169.254/latest"
DATA = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
REMOTE = {"type": "url", "url": ADDRESS}
IMAGE = {"type": "image", "source": DATA}
TEXT = {"type": "text", "text": "x"}


def forwarded(block: dict[str, Any], *, fetches_images: bool = False) -> object:
    """The block alone in a message, as it is forwarded; None for an estimate."""
    body = {"model": "m", "messages": [{"role": "user", "content": [block]}]}
    found = forwarded_input(msgspec.convert(body, CountTokens), fetches_images=fetches_images)
    return None if found is None else found.messages[0]["content"][0]


@pytest.mark.parametrize(
    ("block", "becomes"),
    [
        ({**TEXT, "cache_control": {"type": "ephemeral"}, "source": REMOTE}, TEXT),
        ({**IMAGE, "source": {**DATA, "url": ADDRESS}, "uuid": "a"}, IMAGE),
        (
            {"type": "document", "source": {"type": "text", "data": ADDRESS}, "title": "a"},
            {"type": "document", "source": {"type": "text", "data": ADDRESS}, "title": "a"},
        ),
        (
            {"type": "document", "source": {"type": "content", "content": [IMAGE, TEXT]}},
            {"type": "document", "source": {"type": "content", "content": [IMAGE, TEXT]}},
        ),
        (
            {"type": "tool_use", "id": "a", "name": "f", "input": {"q": 1}, "image_url": ADDRESS},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"q": 1}},
        ),
        (
            {"type": "tool_result", "tool_use_id": "a", "content": [IMAGE], "source": REMOTE},
            {"type": "tool_result", "tool_use_id": "a", "content": [IMAGE]},
        ),
        (
            {"type": "thinking", "thinking": "x", "signature": "s", "cache_control": None},
            {"type": "thinking", "thinking": "x", "signature": "s"},
        ),
    ],
)
def test_a_block_is_forwarded_with_the_members_of_its_type(
    block: dict[str, Any], becomes: dict[str, Any]
) -> None:
    assert forwarded(block) == becomes


@pytest.mark.guarantee("T33")
@pytest.mark.parametrize(
    ("block", "member"),
    [
        ({"type": "image", "source": REMOTE}, "source.url"),
        ({"type": "document", "source": REMOTE}, "source.url"),
        ({"type": "image", "source": {**DATA, "data": ADDRESS}}, "source.data"),
        (
            {"type": "tool_result", "content": [{"type": "image", "source": REMOTE}]},
            "content[0].source.url",
        ),
        (
            {
                "type": "document",
                "source": {"type": "content", "content": [{"type": "image", "source": REMOTE}]},
            },
            "source.content[0].source.url",
        ),
    ],
)
def test_an_address_is_refused_wherever_it_stands(block: dict[str, Any], member: str) -> None:
    with pytest.raises(RemoteMediaRefused) as refusal:
        forwarded(block)

    assert refusal.value.param == f"messages[0].content[0].{member}"
    assert "fetches_images_safely" in refusal.value.message


@pytest.mark.parametrize("data", ["/etc/passwd", "iVBORw0KGg", "data:image/png;base64,AAAA"])
def test_data_that_is_not_base64_is_the_callers_to_mend(data: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        forwarded({"type": "image", "source": {**DATA, "data": data}})

    assert refusal.value.param == "messages[0].content[0].source.data"
    assert "base64" in refusal.value.message


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [
        *(("image", "application/pdf"), ("image", "image/svg+xml"), ("image", "video/mp4")),
        *(("document", "image/png"), ("document", "video/mp4"), ("document", "audio/wav")),
    ],
)
def test_data_stands_in_a_block_of_its_own_kind(kind: str, media_type: str) -> None:
    with pytest.raises(MediaTypeRefused) as refusal:
        forwarded({"type": kind, "source": {**DATA, "media_type": media_type}})

    assert refusal.value.param == "messages[0].content[0].source.media_type"
    assert f"'{media_type}'" in refusal.value.message


def test_a_backend_that_fetches_safely_gets_addresses_of_images_alone() -> None:
    image = {"type": "image", "source": REMOTE}

    assert forwarded(image, fetches_images=True) == image
    with pytest.raises(RemoteMediaRefused):
        forwarded({"type": "document", "source": REMOTE}, fetches_images=True)
    with pytest.raises(RemoteMediaRefused):
        forwarded(
            {"type": "image", "source": {"type": "url", "url": "file:///a"}}, fetches_images=True
        )


@pytest.mark.parametrize(
    ("block", "failure", "code"),
    [
        ({"type": "txet", "text": "x"}, UnsupportedOption, "unsupported_parameter"),
        ({"type": "video", "source": REMOTE}, UnsupportedOption, "unsupported_parameter"),
        ({"text": "x"}, InvalidRequest, "missing_required_parameter"),
        ({"type": "text", "text": {"url": ADDRESS}}, InvalidRequest, "invalid_type"),
        ({"type": "image", "source": ADDRESS}, InvalidRequest, "invalid_type"),
        ({"type": "image"}, InvalidRequest, "missing_required_parameter"),
        (
            {"type": "image", "source": {"type": "file", "file_id": "f"}},
            InvalidRequest,
            "unsupported_parameter",
        ),
        (
            {"type": "image", "source": {"type": "content", "content": []}},
            UnsupportedOption,
            "unsupported_parameter",
        ),
        ({"type": "tool_result", "content": {"url": ADDRESS}}, InvalidRequest, "invalid_type"),
        ({"type": "tool_use", "id": "a", "input": [REMOTE]}, InvalidRequest, "invalid_type"),
        (
            {"type": "image", "source": {**DATA, "media_type": ADDRESS}},
            InvalidRequest,
            "invalid_value",
        ),
    ],
)
def test_what_is_no_known_block_is_refused(
    block: dict[str, Any], failure: type[Exception], code: str
) -> None:
    with pytest.raises(failure) as refusal:
        forwarded(block)

    assert getattr(refusal.value, "code", None) == code


@pytest.mark.parametrize("kind", ["server_tool_use", "web_fetch_tool_result", "search_result"])
def test_blocks_of_a_provider_s_own_tools_are_estimated_and_not_forwarded(kind: str) -> None:
    assert forwarded({"type": kind, "content": [{"type": "image", "source": REMOTE}]}) is None


def test_system_blocks_and_members_of_messages_follow_the_same_rule() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi", "image_url": ADDRESS}],
        "system": [{**TEXT, "source": REMOTE}],
    }

    found = forwarded_input(msgspec.convert(body, CountTokens), fetches_images=False)

    assert found is not None
    assert found.messages == [{"role": "user", "content": "Hi"}]
    assert found.system == [TEXT]


def test_a_role_is_a_text() -> None:
    body = {"model": "m", "messages": [{"role": REMOTE, "content": "Hi"}]}

    with pytest.raises(InvalidRequest) as refusal:
        forwarded_input(msgspec.convert(body, CountTokens), fetches_images=False)

    assert (refusal.value.code, refusal.value.param) == ("invalid_type", "messages[0].role")
