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
GO = "openapi-generator-cli"
GO_MODULE = "module example/program\n\ngo 1.21\n"
GO_OPTIONS = "withGoMod=false,packageName=tollhouse"
ALONE = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off"}
"""The client needs no other module and no other compiler."""
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
        program, made = clients.program_of(self.client), self.folder / "client"
        if self.client == PYTHON:
            made = self.folder / "tollhouse_client"
            options = ("--meta", "none", "--output-path", made, "--fail-on-warning")
            return await self._run(program, "generate", "--path", DOCUMENT, *options)
        if self.client == GO:
            options = ("-g", "go", "-o", made, f"--additional-properties={GO_OPTIONS}")
            no_tests = "--global-property=apiTests=false"
            return await self._run(program, "generate", "-i", DOCUMENT, *options, no_tests)
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
        if self.client == GO:
            shutil.copy(DRIVERS / f"{stem}.go", self.folder / "main.go")
            (self.folder / "go.mod").write_text(GO_MODULE, encoding="utf-8")
            return await self._go("vet", "./...")
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
        if self.client == PYTHON:
            ended = await self._run(clients.python_of(PYTHON), "main.py", **variables)
        elif self.client == GO:
            ended = await self._go("run", ".", **variables)
        else:
            ended = await self._run(clients.NODE, Path("built") / "main.js", **variables)
        assert ended.status == 0, ended.warnings
        return ended.objects[-1]

    def _write(self, name: str, content: object) -> None:
        (self.folder / name).write_bytes(msgspec.json.encode(content))

    async def _node(self, program: str, *arguments: str | Path) -> Ended:
        return await self._run(clients.NODE, f"node_modules/.bin/{program}", *arguments)

    async def _go(self, *arguments: str, **variables: str) -> Ended:
        kept = clients.HOME / GO / "compiled"
        go = clients.program_of(GO).with_name("go")
        return await self._run(go, *arguments, GOCACHE=str(kept), **ALONE, **variables)

    async def _run(self, *command: str | Path, **variables: str) -> Ended:
        path = f"{clients.python_of(PYTHON).parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.folder), **variables}
        return await run_to_end(*command, environment=environment, folder=self.folder)
