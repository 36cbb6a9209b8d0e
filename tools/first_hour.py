"""`python -m tools.first_hour`: do what a user does in the first hour, and record each step.

The checkout is a clone of this commit, the user's folder is empty, and the commands are those that
CONTRIBUTING, the README, the guides and `tollhouse up` print. Caches of pip and npm are those of
the machine. A step that does not work is red, and the run goes on with the next one.
"""

import contextlib
import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.cli.commands import free_port
from tests.cli.documents import blocks, read, scripts
from tollhouse.base.clock import SystemClock
from tools import clients, long_runs
from tools.mutants.processes import MARK

EVIDENCE: Final = long_runs.ROOT / "docs" / "evidence" / "first-hour.jsonl"
STEP_SECONDS_MAX: Final = 25 * 60
RECORD_SECONDS_MAX: Final = 20
REVOCATION_SECONDS_MAX: Final = 1.0
DETAIL_CHARACTERS_MAX: Final = 300
QUESTION: Final = 'Does the text mention "Operation Bluebird"?'
MATCHING: Final = "Write an invitation to Operation Bluebird."
HARMLESS: Final = "Say hello."
AGENTS: Final = ("Claude Code", "Codex", "OpenCode", "aider")
MARKS: Final = (MARK, "TOLLHOUSE_RUN")
"""By these the processes of a run are found and ended."""
README: Final = read("README.md")
GUIDES: Final = long_runs.ROOT / "docs" / "guides"
_EXPORT: Final = re.compile(r"^export (\w+)=(\S+)$", re.MULTILINE)
_AGENT: Final = r"^{name} \(((?:npm|pip) install [^)]+)\):\n\n((?:.+\n)+)"
_PRIVATE: Final = re.compile(r"\bth[ap]_\w+|/tmp/\S+")


class StepFailure(Exception):
    """What the user saw in place of what the page promises."""


class StepRun(msgspec.Struct, frozen=True, kw_only=True):
    """One step with its outcome, `green` or `red`, and what was seen."""

    step: str
    seconds: float
    outcome: str
    detail: str


class HourRun(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the evidence."""

    date: str
    commit: str
    seconds: int
    outcome: str
    steps: list[StepRun]


@dataclass
class User:
    """A user with a checkout and an empty folder, and what was printed and exported so far."""

    home: Path
    environment: dict[str, str]
    printed: str = ""
    exported: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def folder(self) -> Path:
        """The folder in which everything but the build happens."""
        return self.home / "empty"

    def bash(
        self, script: str, folder: Path | None = None, statuses: Sequence[int] = (0,), **more: str
    ) -> str:
        """Return what pasted lines print; raise `StepFailure` if they end with another status."""
        process = subprocess.Popen(  # noqa: S603 - lines of our own pages
            ["bash", "-eu", "-o", "pipefail", "-c", script],  # noqa: S607 - the user's own
            cwd=folder or self.folder,
            env={**self.environment, **self.exported, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            written, warned = process.communicate(timeout=STEP_SECONDS_MAX)
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise StepFailure(f"{STEP_SECONDS_MAX} s were not enough: {script}") from late
        if process.returncode not in statuses:
            said = written.strip()[-130:] + warned.strip()[-150:]
            raise StepFailure(f"status {process.returncode}: {said}")
        return written

    def json(self, command: str) -> Any:  # noqa: ANN401 - JSON
        """Return what a command prints with `--json`."""
        return json.loads(self.bash(f"{command} --json"))

    def printed_lines(self, beginning: str, end: str) -> str:
        """Return the lines that `up` printed, from one to another."""
        require(beginning in self.printed, f"`tollhouse up` prints no `{beginning.strip()}`")
        found = self.printed[self.printed.index(beginning) :]
        return found[: found.index(end) + len(end)]

    def ask(self, text: str) -> Any:  # noqa: ANN401 - JSON
        """Return the answer to a text by the printed command, also if it is an error."""
        command = self.printed_lines("curl ", 'completions"').replace(HARMLESS, text)
        return json.loads(self.bash(command, statuses=(0, 22)))

    def status(self, key: str) -> str:
        """Return the status of the smallest request with this value of a key."""
        command = "curl --silent --output /dev/null --write-out '%{http_code}'"
        return self.bash(f'{command} -H "Authorization: Bearer {key}" "$TOLLHOUSE_URL/v1/models"')


def require(is_so: object, otherwise: str) -> None:
    """Raise `StepFailure` unless something is as the user expects."""
    if not is_so:
        raise StepFailure(otherwise)


def build_commands(contributing: str) -> list[str]:
    """Return the commands that build a release, from the steps of a release."""
    step = next(line for line in contributing.splitlines() if "pip wheel" in line)
    return [each for each in re.findall(r"`([^`]+)`", step) if each.startswith(("make", "python"))]


def _build(user: User) -> str:
    checkout = user.home / "checkout"
    user.bash(shlex.join(("git", "clone", "--quiet", str(long_runs.ROOT), str(checkout))))
    for command in build_commands(read("CONTRIBUTING.md")):
        user.bash(command, folder=checkout)
    (wheel,) = (checkout / "dist").glob("*.whl")
    wheel.rename(user.folder / wheel.name)
    return wheel.name


def _install(user: User) -> str:
    user.bash(blocks(README, "")[0])
    programs = user.folder / "tollhouse" / "bin"
    user.environment["PATH"] = f"{programs}:{user.environment['PATH']}"
    return user.bash("pip list --format=freeze | grep ^tollhouse=").strip()


def _up(user: User) -> str:
    user.printed = user.bash(scripts(README)[0])
    user.exported.update(_EXPORT.findall(user.printed))
    return user.printed_lines("model  ", "\n")


def _openai_python(user: User) -> str:
    installing, _, program = user.printed_lines("pip install openai", "\nEND\n").partition("\n")
    user.bash(installing)
    lengths = "import os\nwhile chunk := os.read(0, 65536): print(len(chunk), flush=True)"
    pieces = user.bash(f"({program}) | python -c {shlex.quote(lengths)}").split()
    require(len(pieces) > 1, "the printed stream arrives in one piece")
    user.bash(f"python -c {shlex.quote(blocks(README, 'python')[0])}")
    return f"{len(pieces)} pieces"


def _openai_node(user: User) -> str:
    return user.bash(user.printed_lines("npm install openai", "\nEND\n"))


def _anthropic_python(user: User) -> str:
    programs = blocks(read("docs/guides/first-completion.md"), "python")
    program = next(each for each in programs if "anthropic" in each)
    return user.bash(f"pip install --quiet anthropic && python -c {shlex.quote(program)}")


def _agent(name: str) -> Callable[[User], str]:
    def step(user: User) -> str:
        printed = re.search(_AGENT.format(name=name), user.printed, re.MULTILINE)
        require(printed, f"`tollhouse up` prints no command for {name}")
        assert printed is not None
        programs, folder = user.home / "programs", user.home / name.replace(" ", "-")
        (folder / "home").mkdir(parents=True)
        (folder / "empty").mkdir()
        path = f"{programs}/bin:{user.environment['PATH']}"
        user.bash(f"test -e {programs} || python3 -m venv {programs}")
        user.bash(printed[1], PATH=path, npm_config_prefix=str(programs))
        said = user.bash(printed[2], folder / "empty", PATH=path, HOME=str(folder / "home"))
        files = {each.name: each.read_text() for each in sorted((folder / "empty").glob("*.txt"))}
        is_done = len(files) > 1 and "Hello\n" not in files.values()
        require(is_done, f"the task is not done: {files}; {said[-150:]}")
        return f"{printed[1]}: {files}"

    return step


def _own_policy(user: User) -> str:
    scope = "--scope organization --mode enforcing --direction request"
    rule = shlex.quote(QUESTION)
    made = user.json(f'tollhouse policy create "Secret project" --rule {rule} {scope}')
    user.exported["POLICY_ID"] = made["id"]
    user.bash('tollhouse policy publish "$POLICY_ID"')
    try:
        refused, answered = user.ask(MATCHING), user.ask(HARMLESS)
    finally:
        user.bash('tollhouse policy pause "$POLICY_ID"')
    error = refused.get("error", {})
    require(error.get("code") == "policy_violation", f"a matching request got {error or 200}")
    require("choices" in answered, f"a harmless request got {answered.get('error')}")
    user.exported["REQUEST_ID"] = error["request_id"]
    return "a match is 403, a harmless text is answered"


def _explained(user: User) -> str:
    require("REQUEST_ID" in user.exported, "no request was refused by a policy")
    deadline, shown = time.monotonic() + RECORD_SECONDS_MAX, ""
    while not shown and time.monotonic() < deadline:
        shown = user.bash(scripts(read("docs/guides/requests.md"))[0], statuses=(0, 1))
    reason = next((line for line in shown.splitlines() if line.startswith("refused_by")), "")
    require("Secret project" in reason, f"the policy is not named: {shown}")
    return reason


def _capped_key(user: User) -> str:
    guides = "".join(path.read_text(encoding="utf-8") for path in GUIDES.glob("*.md"))
    lines = "".join(scripts(guides)).splitlines()
    command = next((each for each in lines if "key create" in each and "--cap" in each), None)
    require(command, "no guide has one command that makes a capped key")
    user.exported["PROJECT_ID"] = user.json("tollhouse project list")["data"][0]["id"]
    made = user.json(str(command))
    caps = json.dumps(user.json("tollhouse caps show")["data"])
    require(made["id"] in caps, "the new key has no cap")
    return str(command)


def _leaked_key(user: User) -> str:
    project = user.json("tollhouse project list")["data"][0]["id"]
    made = user.json(f"tollhouse key create --project {project} leaked")
    require(user.status(made["value"]) == "200", "the new key does not work")
    rotated = user.json(f"tollhouse key rotate {made['id']} --overlap-seconds 0")
    ended, seconds = time.monotonic(), 0.0
    while user.status(made["value"]) != "401":
        seconds = time.monotonic() - ended
        require(seconds < REVOCATION_SECONDS_MAX, "the old value works after a second")
    require(user.status(rotated["value"]) == "200", "the new value does not work")
    return f"the old value is 401 after {seconds:.1f} s"


def _exported_costs(user: User) -> str:
    user.bash(
        'curl --fail --silent --header "Authorization: Bearer $TOLLHOUSE_ADMIN_KEY" '
        '--get --data "start_time=$(date -d -2day +%s)" --output costs.csv '
        '"$TOLLHOUSE_URL/manage/v1/organization/costs/focus"'
    )
    with (user.folder / "costs.csv").open(encoding="utf-8", newline="") as file:
        costs = [Decimal(row["BilledCost"]) for row in csv.DictReader(file)]
    require(sum(costs) > 0, "the export has no cost")
    return f"{len(costs)} rows, {sum(costs)} USD"


STEPS: Final[dict[str, Callable[[User], str]]] = {
    "clone and build the wheel": _build,
    "install": _install,
    "up": _up,
    "curl": lambda user: user.ask(HARMLESS)["choices"][0]["message"]["content"],
    "OpenAI's SDK for Python, streamed": _openai_python,
    "OpenAI's SDK for Node": _openai_node,
    "Anthropic's SDK for Python": _anthropic_python,
    **{f"{name} reads, edits and runs": _agent(name) for name in AGENTS},
    "a policy of one's own": _own_policy,
    "a refused request is explained": _explained,
    "a capped key": _capped_key,
    "a leaked key is replaced": _leaked_key,
    "costs are exported": _exported_costs,
    "down and reset": lambda user: user.bash(scripts(README)[2] + "ls"),
}
NEEDED: Final = ("clone and build the wheel", "install", "up")
"""Without one of these the later steps are not tried, and count as failed."""


def take(name: str, step: Callable[[User], str], user: User) -> StepRun:
    """Take one step, print it, and return how it ended."""
    began = time.monotonic()
    try:
        outcome, detail = "green", step(user)
    except (StepFailure, LookupError, ValueError, TypeError, OSError, StopIteration) as failed:
        outcome, detail = "red", f"{type(failed).__name__}: {failed}"
    seconds = round(time.monotonic() - began, 1)
    shown = _PRIVATE.sub("HIDDEN", " ".join(detail.replace(str(user.home), "").split()))
    shown = shown[:DETAIL_CHARACTERS_MAX]
    print(f"{outcome:6} {seconds:7.1f} s  {name}: {shown}", flush=True)
    return StepRun(step=name, seconds=seconds, outcome=outcome, detail=shown)


def environment() -> dict[str, str]:
    """Return a user's environment: that of the machine without this project's own."""
    own = ("TOLLHOUSE_", "VIRTUAL_ENV", "PYTHON", "OPENAI", "ANTHROPIC", "CLAUDE")
    kept = {name: os.environ[name] for name in os.environ if not name.startswith(own)}
    kept |= {name: os.environ[name] for name in MARKS if name in os.environ}
    path = [each for each in kept["PATH"].split(":") if str(long_runs.ROOT) not in each]
    ports = {f"TOLLHOUSE_SERVER__{name}": str(free_port()) for name in ("PORT", "PROBE_PORT")}
    return {**kept, **ports, "PATH": ":".join([*path, str(clients.NODE.parent)])}


def main() -> int:
    """Take all steps, append the record, and return 1 if a step is red."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    commit, steps = long_runs.current_commit(), list[StepRun]()
    with tempfile.TemporaryDirectory(prefix="first-hour-") as home:
        user = User(home=Path(home), environment=environment())
        user.folder.mkdir()
        try:
            for name, step in STEPS.items():
                steps.append(take(name, step, user))
                if steps[-1].outcome == "red" and name in NEEDED:
                    break
        finally:
            with contextlib.suppress(StepFailure):
                user.bash("tollhouse reset --yes")
    red = len(STEPS) - sum(step.outcome == "green" for step in steps)
    run = HourRun(
        date=SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=commit,
        seconds=round(sum(step.seconds for step in steps)),
        outcome="red" if red else "green",
        steps=steps,
    )
    with EVIDENCE.open("ab") as evidence:
        evidence.write(msgspec.json.encode(run) + b"\n")
    print(f"{len(STEPS) - red} passed, {red} failed in {run.seconds} s")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
