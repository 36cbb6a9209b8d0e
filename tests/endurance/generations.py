"""The upstream's own log of what it generated, joined with the entries of the ledger."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from tests.endurance.numbered import CallerAnswer
from tests.support.deployment import COMPLETION_PICO_USD, PROMPT_PICO_USD
from tests.upstream.answers import answer_to
from tests.upstream.asked import ChatAsked
from tests.upstream.exchanges import Journal, RecordedExchange
from tests.upstream.scripts import script_in
from tollhouse.storage.database import Database, Row
from tollhouse.trial.chat import last_words, prompt_tokens

_ENTRIES = """
    SELECT hold.reservation_id, hold.instance_id, end_.kind, end_.input_tokens,
           end_.output_tokens, end_.posted_pico, end_.is_estimated, end_.delivered_tokens
      FROM ledger_entries hold
      LEFT JOIN ledger_entries end_
        ON end_.organization_id = hold.organization_id
       AND end_.admitted_day = hold.admitted_day
       AND end_.reservation_id = hold.reservation_id
       AND end_.phase = 1
     WHERE hold.phase = 0 AND hold.organization_id = ANY($1)
"""

Tokens = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Generation:
    """One answer, with the tokens that it has if it is sent to its end."""

    number: int
    tokens: Tokens

    @property
    def price_pico_usd(self) -> int:
        return self.tokens[0] * PROMPT_PICO_USD + self.tokens[1] * COMPLETION_PICO_USD


class GenerationLog(Journal):
    """A journal that keeps every generation, however many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.generations: list[Generation] = []

    def open(
        self, *, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> RecordedExchange:
        """Add a request that has arrived."""
        exchange = super().open(method=method, path=path, headers=headers, body=body)
        asked = msgspec.json.decode(body, type=ChatAsked)
        words = last_words(asked.messages)
        if (script := script_in(words)) is not None:
            answer = answer_to(asked, script, tokens_default=0)
            self.generations.append(
                Generation(
                    number=int(words.split("\n")[1]),
                    tokens=(prompt_tokens(asked.messages), answer.choice_tokens),
                )
            )
        return exchange


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What the upstream generated, against what the ledger charged and the callers received.

    A generation is written off only if its worker was killed before the charge was committed.
    """

    generations: int
    posted: int
    estimated: int
    """Charged by the gateway's own count, because the answer broke off before it was reported."""
    voided: int
    written_off: int
    answered: int
    answered_written_off: int
    difference_pico_usd: int
    broken_off: int = 0
    """Charged as the upstream had reported when the answer broke off, such as by its deadline."""
    faults: list[str] = field(default_factory=list[str])


async def compare(
    database: Database,
    organizations: Collection[UUID],
    log: GenerationLog,
    answers: Sequence[CallerAnswer],
    *,
    killed: Collection[UUID],
) -> Comparison:
    """Join both by the tokens, which no two generations share, and by the IDs that callers know."""
    rows = await database.fetch_all(_ENTRIES, list(organizations))
    entries = {str(row["reservation_id"]): row for row in rows}
    estimated = [row for row in rows if row["kind"] == "post" and row["is_estimated"]]
    reported = [row for row in rows if row["kind"] == "post" and not row["is_estimated"]]
    generations = {each.number: each for each in log.generations}
    broken_off = _broken_off(answers, generations)
    partial = [row for row in reported if _is_part(row, broken_off)]
    posts = [row for row in reported if not _is_part(row, broken_off)]
    written_off = [row for row in rows if row["kind"] == "write_off"]
    generated = Counter(each.tokens for each in log.generations)
    charged = Counter((row["input_tokens"], row["output_tokens"]) for row in posts)
    uncharged = len(generated - charged)
    paid = [each for each in log.generations if each.tokens in charged]
    whole = [answer for answer in answers if answer.is_whole]
    faults = [f"generated twice: {tokens}" for tokens in generated - Counter(set(generated))]
    faults += [f"charged and not generated: {tokens}" for tokens in charged - generated]
    faults += [f"not resolved: {row['reservation_id']}" for row in rows if row["kind"] is None]
    faults += [f"wrong part of an answer: {dict(row)}" for row in partial if _is_wrong(row)]
    faults += [
        f"charged in part and as a whole: {generation}"
        for row in partial
        if (generation := broken_off[str(row["reservation_id"])]).tokens in charged
    ]
    faults += [
        f"written off, but its worker lives: {row['reservation_id']}"
        for row in written_off
        if row["instance_id"] not in killed
    ]
    if uncharged > len(written_off) + len(estimated) + len(partial):
        faults.append(f"{uncharged} generations not charged, {len(written_off)} written off")
    faults += _answer_faults(answers, entries, generations, allowed=("post", "write_off"))
    faults += [
        f"void, but generated: {answer}"
        for answer in answers
        if _kind(entries, answer) == "void"
        and answer.number in generations
        # An answer that failed before any output, such as by its deadline, costs nothing.
        and (answer.status or 0) < 500
    ]
    return Comparison(
        generations=len(log.generations),
        posted=len(posts),
        estimated=len(estimated),
        voided=sum(row["kind"] == "void" for row in rows),
        written_off=len(written_off),
        answered=len(whole),
        answered_written_off=sum(_kind(entries, answer) == "write_off" for answer in whole),
        difference_pico_usd=sum(int(row["posted_pico"]) for row in posts)
        - sum(each.price_pico_usd for each in paid),
        broken_off=len(partial),
        faults=faults,
    )


def _broken_off(
    answers: Sequence[CallerAnswer], generations: Mapping[int, Generation]
) -> dict[str, Generation]:
    """Return what the upstream would have generated for answers that broke off, by their IDs."""
    return {
        answer.request_id: generations[answer.number]
        for answer in answers
        if not answer.is_whole and answer.request_id and answer.number in generations
    }


def _is_part(row: Row, broken_off: Mapping[str, Generation]) -> bool:
    """Return whether an entry charges the first part of an answer that broke off."""
    generation = broken_off.get(str(row["reservation_id"]))
    if generation is None:
        return False
    input_tokens, output_tokens = generation.tokens
    return row["input_tokens"] == input_tokens and 0 < row["output_tokens"] < output_tokens


def _is_wrong(part: Row) -> bool:
    """Return whether the charge of a part is not its price, or less than what was delivered."""
    price = part["input_tokens"] * PROMPT_PICO_USD + part["output_tokens"] * COMPLETION_PICO_USD
    return part["posted_pico"] != price or part["output_tokens"] < (part["delivered_tokens"] or 0)


def _kind(entries: Mapping[str, Row], answer: CallerAnswer) -> str | None:
    row = entries.get(answer.request_id or "")
    return None if row is None else row["kind"]


def _answer_faults(
    answers: Sequence[CallerAnswer],
    entries: Mapping[str, Row],
    generations: Mapping[int, Generation],
    *,
    allowed: Collection[str],
) -> list[str]:
    """A whole answer is charged as generated, or has another allowed end; no other costs more."""
    faults: list[str] = []
    for answer in answers:
        row = entries.get(answer.request_id or "")
        generation = generations.get(answer.number)
        if answer.is_whole and (row is None or row["kind"] not in allowed):
            faults.append(f"answered, and {row and row['kind']}: {answer}")
        elif row is not None and row["kind"] == "post":
            tokens = row["input_tokens"], row["output_tokens"]
            most = (0, 0) if generation is None else generation.tokens
            if tokens != most and (
                answer.is_whole or (tokens[1] > most[1] and not row["is_estimated"])
            ):
                faults.append(f"charged {tokens} for {generation}: {answer}")
    return faults


@dataclass(frozen=True, kw_only=True)
class Settlement:
    """How the requests of a run ended in which no worker was killed, but servers were."""

    generations: int
    answered: int
    posted: int
    estimated: int
    voided: int
    written_off: int
    """Their admission or settlement was under way when the database stopped."""
    faults: list[str] = field(default_factory=list[str])


async def settlement(
    database: Database,
    organizations: Collection[UUID],
    log: GenerationLog,
    answers: Sequence[CallerAnswer],
) -> Settlement:
    """Join by the IDs that callers know: every whole answer is charged as the upstream says."""
    rows = await database.fetch_all(_ENTRIES, list(organizations))
    entries = {str(row["reservation_id"]): row for row in rows}
    kinds = Counter(row["kind"] for row in rows)
    generations = {each.number: each for each in log.generations}
    faults = _answer_faults(answers, entries, generations, allowed=("post",))
    if kinds[None]:
        faults.append(f"{kinds[None]} holds are not resolved")
    if kinds["post"] > len(log.generations):
        faults.append(f"{kinds['post']} charges for {len(log.generations)} generations")
    return Settlement(
        generations=len(log.generations),
        answered=sum(answer.is_whole for answer in answers),
        posted=kinds["post"],
        estimated=sum(bool(row["is_estimated"]) for row in rows),
        voided=kinds["void"],
        written_off=kinds["write_off"],
        faults=faults,
    )
