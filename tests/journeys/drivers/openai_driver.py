"""Every check of OpenAI's SDK for Python."""

import importlib
from typing import Any

from tests.journeys.drivers import (
    openai_admin,
    openai_chat,
    openai_errors,
    openai_models,
    openai_responses,
)
from tests.journeys.drivers.checking import Client, main

SDK: Any = importlib.import_module("openai")
CHECKS = {
    **openai_chat.CHECKS,
    **openai_models.CHECKS,
    **openai_responses.CHECKS,
    **openai_errors.CHECKS,
    **(openai_admin.CHECKS if hasattr(SDK.OpenAI, "admin") else {}),
}


def opened(client: Client, options: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the SDK has
    kind = SDK.OpenAI if client.mode == "sync" else SDK.AsyncOpenAI
    settings: dict[str, Any] = {
        "api_key": client.stage["keys"]["sound"],
        "base_url": client.stage["base_url"] + "/v1",
        "max_retries": 0,
        "default_headers": {"X-Client-Request-Id": client.label},
        "_strict_response_validation": True,
    }
    return kind(**settings | options)


def clients(stage: dict[str, Any]) -> list[Client]:
    return [Client(SDK, mode, stage, opened) for mode in ("sync", "async")]


if __name__ == "__main__":
    main(CHECKS, clients)
