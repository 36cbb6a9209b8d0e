"""The interfaces that backends speak, and the path of a chat in each."""

from typing import Final, Literal
from urllib.parse import quote

Dialect = Literal["openai", "azure", "anthropic"]

CHAT_PATH: Final = "/chat/completions"
MESSAGES_PATH: Final = "/messages"


def chat_path(dialect: Dialect, model: str, *, api_version: str | None) -> str:
    """Return the path that continues a replica's base URL. `model` is its name at the backend.

    Azure's path names the deployment of the model.
    """
    if dialect == "azure":
        deployment = quote(model, safe="")
        return f"/openai/deployments/{deployment}{CHAT_PATH}?api-version={api_version}"
    return MESSAGES_PATH if dialect == "anthropic" else CHAT_PATH
