"""The life of policies written down a second time, from the register and not from the product."""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

DEFAULT_THRESHOLD = 5000
TIMES = ("created_at", "updated_at", "published_at")
NEW_DRAFT: Json = {
    "direction": "both",
    "mode": "monitoring",
    "scope": "unattached",
    "project_ids": [],
    "match_threshold_basis_points": None,
}


@dataclass
class ModelVersion:
    content: Json
    in_force: int


@dataclass
class ModelPolicy:
    """Verbs answer with nothing, or with the status and the code of a refusal."""

    id: str
    name: str
    description: str
    draft: Json
    state: str = "draft"
    revision: int = 1
    base_version: int = 0
    versions: list[ModelVersion] = field(default_factory=list[ModelVersion])
    published_turn: int = 0

    def edit(self, revision: int, fields: Json) -> tuple[int, str] | None:
        if revision != self.revision:
            return 409, "revision_conflict"
        own = {name: fields[name] for name in ("name", "description") if name in fields}
        draft = self.draft | {name: value for name, value in fields.items() if name not in own}
        before = (self.name, self.description, self.draft)
        self.name, self.description = (
            own.get("name", self.name),
            own.get("description", self.description),
        )
        self.draft = draft
        if (self.name, self.description, self.draft) != before:
            self.revision += 1
        return None

    def publish(self, revision: int, turn: int) -> tuple[int, str] | None:
        if revision != self.revision:
            return 409, "revision_conflict"
        threshold = self.draft["match_threshold_basis_points"]
        self._release(ModelVersion(self.draft, threshold or DEFAULT_THRESHOLD), turn)
        self.base_version = len(self.versions)
        return None

    def roll_back(self, revision: int, version: int, turn: int) -> tuple[int, str] | None:
        if revision != self.revision:
            return 409, "revision_conflict"
        if version > len(self.versions):
            return 404, "policy_version_not_found"
        if version == len(self.versions):
            return 409, "policy_state_conflict"
        older = self.versions[version - 1]
        self._release(ModelVersion(older.content, older.in_force), turn)
        return None

    def pause(self, revision: int) -> tuple[int, str] | None:
        if revision != self.revision:
            return 409, "revision_conflict"
        if self.state in {"draft", "paused"}:
            return 409, "policy_state_conflict"
        self.state = "paused"
        self.revision += 1
        return None

    def resume(self, revision: int) -> tuple[int, str] | None:
        if revision != self.revision:
            return 409, "revision_conflict"
        if self.state != "paused":
            return 409, "policy_state_conflict"
        self.state = self.versions[-1].content["mode"]
        self.revision += 1
        return None

    def _release(self, version: ModelVersion, turn: int) -> None:
        self.versions.append(version)
        self.published_turn = turn
        self.revision += 1
        if self.state != "paused":
            self.state = version.content["mode"]

    def applies_to(self, project_id: str) -> bool:
        if self.state not in {"monitoring", "enforcing"}:
            return False
        content = self.versions[-1].content
        return content["scope"] == "organization" or (
            content["scope"] == "projects" and project_id in content["project_ids"]
        )

    def shown(self) -> Json:
        """As the interface shows it, without the times."""
        is_published = bool(self.versions)
        return {
            "object": "organization.policy",
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "state": self.state,
            "revision": self.revision,
            "has_unpublished_changes": (
                not is_published or self.draft != self.versions[-1].content
            ),
            "draft": self.draft | {"base_version": self.base_version},
            "current_version": len(self.versions) or None,
            "published": self.shown_version(len(self.versions)) if is_published else None,
        }

    def shown_version(self, number: int) -> Json:
        version = self.versions[number - 1]
        return {
            "object": "organization.policy.version",
            "id": f"{self.id}_v{number}",
            "version": number,
            "current": number == len(self.versions),
            **version.content,
            "match_threshold_basis_points": version.in_force,
        }

    def shown_effective(self) -> Json:
        content = self.versions[-1].content
        return {
            "object": "organization.effective_policy",
            "id": self.id,
            "name": self.name,
            "version": len(self.versions),
            "direction": content["direction"],
            "mode": content["mode"],
            "scope": content["scope"],
            "source": "organization",
        }


def timeless(policy: Json) -> Json:
    """An answer without its times, which the model does not know."""
    kept = {name: value for name, value in policy.items() if name not in TIMES}
    if kept.get("published"):
        kept["published"] = timeless(kept["published"])
    return kept
