"""Over HTTP: no address of a caller's media reaches a backend that is not declared to fetch it."""

from typing import Any

import pytest

from tests.support.deployment import MODEL, Deployment, model, offering
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADDRESS = "http://169.254.169.254/latest"
PIXEL = "data:image/png;base64,AA"
HTML = "data:text/html;base64,AA"
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
COUNT_TOKENS = "/v1/messages/count_tokens"


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    """A model that takes every kind of media, with a counter, and no declared fetcher."""
    media = model(input_modalities=["text", "image", "audio", "video", "file"])
    return offering(settings, upstream.base_url, models={MODEL: media}, counts_tokens_by="messages")


def body(path: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    name = "input" if path == RESPONSES else "messages"
    return {"model": MODEL, name: [{"role": "user", "content": content}]}


@pytest.mark.guarantee("T33")
@pytest.mark.parametrize(
    ("path", "part", "member"),
    [
        (CHAT, {"type": "image_url", "image_url": {"url": ADDRESS}}, "image_url"),
        (CHAT, {"image_url": ADDRESS}, "image_url"),
        (CHAT, {"type": "video_url", "video_url": {"url": ADDRESS}}, "video_url"),
        (CHAT, {"video_url": ADDRESS}, "video_url"),
        (CHAT, {"type": "file", "file": {"file_url": ADDRESS}}, "file.file_data"),
        (CHAT, {"type": "file", "file": {"file_data": ADDRESS}}, "file.file_data"),
        (CHAT, {"type": "input_audio", "input_audio": {"data": ADDRESS}}, "input_audio.data"),
        (CHAT, {"audio_url": {"url": ADDRESS}}, "type"),
        (RESPONSES, {"type": "input_image", "image_url": ADDRESS}, "image_url"),
        (RESPONSES, {"type": "input_file", "file_data": ADDRESS}, "file_data"),
        (COUNT_TOKENS, {"type": "image", "source": {"type": "url", "url": ADDRESS}}, "source.url"),
    ],
)
async def test_an_address_is_answered_501_and_reaches_no_backend(
    deployment: Deployment, path: str, part: dict[str, Any], member: str
) -> None:
    async with deployment.customer() as client:
        answer = await client.post(path, json=body(path, [part]))

    error = answer.json()["error"]
    place = "input" if path == RESPONSES else "messages"
    assert (answer.status_code, error["code"]) == (501, "unsupported_parameter")
    assert error["param"] == f"{place}[0].content[0].{member}"
    assert not len(deployment.upstream.seen)


@pytest.mark.parametrize(
    ("path", "part", "member"),
    [
        (CHAT, {"type": "image_url", "image_url": {"url": HTML}}, "image_url"),
        (CHAT, {"type": "video_url", "video_url": {"url": PIXEL}}, "video_url"),
        (CHAT, {"type": "file", "file": {"file_data": PIXEL}}, "file.file_data"),
        (RESPONSES, {"type": "input_image", "image_url": HTML}, "image_url"),
        (RESPONSES, {"type": "input_file", "file_data": PIXEL}, "file_data"),
    ],
)
async def test_data_of_another_kind_is_answered_501_with_its_media_type(
    deployment: Deployment, path: str, part: dict[str, Any], member: str
) -> None:
    async with deployment.customer() as client:
        answer = await client.post(path, json=body(path, [part]))

    error = answer.json()["error"]
    place = "input" if path == RESPONSES else "messages"
    assert (answer.status_code, error["code"]) == (501, "unsupported_parameter")
    assert error["param"] == f"{place}[0].content[0].{member}"
    assert "'text/html'" in error["message"] or "'image/png'" in error["message"]
    assert not len(deployment.upstream.seen)


@pytest.mark.guarantee("T33")
@pytest.mark.parametrize(
    ("path", "part"),
    [
        (CHAT, {"type": "text", "text": "x", "uuid": "a", "image_url": {"url": ADDRESS}}),
        (CHAT, {"type": "image_url", "image_url": PIXEL, "uuid": "a", "video_url": ADDRESS}),
        (RESPONSES, {"type": "input_text", "text": "x", "uuid": "a", "audio_url": ADDRESS}),
        (RESPONSES, {"type": "input_image", "image_url": PIXEL, "video_url": ADDRESS}),
        (COUNT_TOKENS, {"type": "text", "text": "x", "source": {"type": "url", "url": ADDRESS}}),
    ],
)
async def test_unknown_members_are_accepted_and_not_forwarded(
    deployment: Deployment, path: str, part: dict[str, Any]
) -> None:
    async with deployment.customer() as client:
        answer = await client.post(path, json=body(path, [part]))

    assert answer.status_code == 200, answer.text
    (exchange,) = deployment.upstream.seen
    assert ADDRESS.encode() not in exchange.body
