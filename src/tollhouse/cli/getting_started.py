"""What `tollhouse init` says at its end: commands that work when they are pasted."""

import shlex
from pathlib import Path

from msgspec import Struct

from tollhouse.settings import DEFAULT_CONFIG_PATH, ServerSettings

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not listened on

TEXT = """
Tollhouse is set up. The configuration is {config}, with secrets that exist nowhere else.

These keys are shown only now:

export TOLLHOUSE_URL={steps.base_url}
export TOLLHOUSE_ADMIN_KEY={admin_key}
export TOLLHOUSE_PROJECT_KEY={project_key}

The organization has {credit} USD of sandbox credit; `tollhouse credits grant` gives it more.

Start the server:

{steps.serve}

Ask it something in another terminal, where you have pasted the three lines above:

{steps.list_admin_keys}
{steps.list_projects}

With the OpenAI SDK:

OpenAI(base_url="{steps.openai_base_url}", api_key=os.environ["TOLLHOUSE_PROJECT_KEY"])
"""

ASK = (
    'curl --fail-with-body --header "Authorization: Bearer $TOLLHOUSE_ADMIN_KEY" "$TOLLHOUSE_URL{}"'
)


class GettingStarted(Struct, frozen=True, kw_only=True):
    """The keys stand in variables of the environment."""

    base_url: str
    serve: str
    list_admin_keys: str
    list_projects: str
    openai_base_url: str


def first_steps(settings_path: Path, server: ServerSettings) -> GettingStarted:
    """As they have to be for this file and these addresses."""
    base_url = url(server)
    is_default = settings_path == DEFAULT_CONFIG_PATH
    config = "" if is_default else f" --config {shlex.quote(str(settings_path))}"
    return GettingStarted(
        base_url=base_url,
        serve=f"tollhouse{config} serve",
        list_admin_keys=ASK.format("/v1/organization/admin_api_keys"),
        list_projects=ASK.format("/manage/v1/organization/projects"),
        openai_base_url=f"{base_url}/v1",
    )


def url(server: ServerSettings) -> str:
    """Where a client on this machine finds it."""
    host = EVERYWHERE.get(server.host, server.host)
    return f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"
