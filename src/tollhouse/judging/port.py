"""What asking knows of a judge: one implementation reads an engine's token probabilities."""

from typing import Protocol

from tollhouse.judging.types import Evidence, Profile, Question


class Judge(Protocol):
    """It answers one question at a time, and many at once."""

    @property
    def identity(self) -> str:
        """The same as long as the same question gets the same answer: a key of cached verdicts."""
        ...

    @property
    def profile(self) -> Profile:
        """How it wants to be asked."""
        ...

    async def ask(self, question: Question) -> Evidence:
        """One answer. Raises `JudgeFailed`, and nothing else that a judge can be blamed for."""
        ...
