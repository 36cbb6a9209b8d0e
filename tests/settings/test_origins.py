"""Origins of browsers that may call the API, as settings."""

import pytest

from tollhouse.settings import InvalidSettings, ServerSettings


@pytest.mark.parametrize(
    "origin",
    [
        *("*", "null", "", "app.example", "https://app.example/", "https://App.example"),
        *("https://*.example", "https://app.example?x", "https://user@app.example", "https://"),
    ],
)
def test_what_no_browser_sends_is_refused_at_start(origin: str) -> None:
    with pytest.raises(InvalidSettings, match="cors_origins"):
        ServerSettings(cors_origins=(origin,))


@pytest.mark.parametrize(
    "origin",
    ["https://app.example", "http://localhost:5173", "http://[::1]:8080", "app-x://localhost"],
)
def test_origins_as_browsers_send_them_are_accepted(origin: str) -> None:
    assert ServerSettings(cors_origins=(origin,)).cors_origins == (origin,)
