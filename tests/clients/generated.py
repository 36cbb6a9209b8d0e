"""Clients that are generated from the OpenAPI document, and the programs that use them."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.clients.framework import DRIVERS
from tests.clients.programs import Ended, run_to_end
from tests.support.deployment import MODEL, Deployment
from tools import clients

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "openapi.json"
PYTHON = "openapi-python-client"
COMPILER_OPTIONS = {
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "skipLibCheck": True,
    "module": "commonjs",
    "moduleResolution": "node10",
    "target": "es2022",
    "lib": ["es2022", "dom", "dom.iterable"],
    "types": [],
    "outDir": "built",
}


@dataclass(frozen=True, kw_only=True)
class Program:
    """A driver with the client that was generated for it, in a folder of its own."""

    client: str
    folder: Path

    async def generate(self) -> Ended:
        """Generate the client. What the generator could not read is in its warnings."""
        if self.client == PYTHON:
            made = self.folder / "tollhouse_client"
            options = ("--meta", "none", "--output-path", made, "--fail-on-warning")
            program = clients.python_of(self.client).with_name(self.client)
            return await self._run(program, "generate", "--path", DOCUMENT, *options)
        made = self.folder / "client"
        (self.folder / "node_modules").symlink_to(clients.HOME / self.client / "node_modules")
        if self.client == "hey-api":
            return await self._node("openapi-ts", "--input", DOCUMENT, "--output", made)
        options = ("--default-non-nullable", "false", "--output", made / "schema.ts")
        return await self._node(self.client, DOCUMENT, *options)

    async def check_types(self) -> Ended:
        """Check the driver in strict mode. A driver in TypeScript is also compiled."""
        stem = self.client.replace("-", "_")
        if self.client == PYTHON:
            shutil.copy(DRIVERS / f"{stem}.py", self.folder / "main.py")
            self._write("pyrightconfig.json", {"include": ["main.py"], "strict": ["main.py"]})
            interpreter = ("--pythonpath", clients.python_of(self.client))
            return await self._run(sys.executable, "-m", "pyright", *interpreter)
        shutil.copy(DRIVERS / f"{stem}.ts", self.folder / "main.ts")
        self._write("tsconfig.json", {"compilerOptions": COMPILER_OPTIONS, "files": ["main.ts"]})
        return await self._node("tsc")

    async def run(self, deployment: Deployment) -> dict[str, Any]:
        """Return what the calls gave, by their names."""
        variables = {
            "BASE_URL": deployment.gateway.base_url,
            "KEY": deployment.key.value,
            "ADMIN_KEY": deployment.admin.value,
            "MODEL": MODEL,
            "PROJECT": str(deployment.project.id),
        }
        command = (
            (clients.python_of(self.client), "main.py")
            if self.client == PYTHON
            else (clients.NODE, Path("built") / "main.js")
        )
        ended = await self._run(*command, **variables)
        assert ended.status == 0, ended.warnings
        return ended.objects[-1]

    def _write(self, name: str, content: object) -> None:
        (self.folder / name).write_bytes(msgspec.json.encode(content))

    async def _node(self, program: str, *arguments: str | Path) -> Ended:
        return await self._run(clients.NODE, f"node_modules/.bin/{program}", *arguments)

    async def _run(self, *command: str | Path, **variables: str) -> Ended:
        path = f"{clients.python_of(PYTHON).parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.folder), **variables}
        return await run_to_end(*command, environment=environment, folder=self.folder)
