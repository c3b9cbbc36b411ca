"""The services of annotated dialogues: what is asked of them was answered once, and is answered so again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.types import Json, JsonObject
from parley.evaluation.dialogues.dataset import Dialogue, Service, ServiceCall

ANYTHING = "dontcare"
MOST_ROWS = 10

Parameters = frozenset[tuple[str, str]]
Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service gave for one call. `failed`: it did not do it; `rows` are then what it offers instead."""

    rows: tuple[Row, ...]
    failed: bool = False


class Recorded:
    """A database of the calls in dialogues. `others`: what is answered where these say nothing."""

    def __init__(
        self,
        services: Mapping[str, Service],
        dialogues: Iterable[Dialogue],
        others: Recorded | None = None,
    ) -> None:
        self._services = services
        self._others = others
        self._answers: dict[tuple[str, str, Parameters], Answer] = {}
        self._rows: dict[tuple[str, str], list[Row]] = {}
        for service, call, answer in _calls(dialogues):
            key = (service, call.method, self.normalize(service, call.method, call.parameters))
            self._answers.setdefault(key, answer)
            self._rows.setdefault((service, call.method), []).extend(answer.rows)

    def normalize(self, service: str, method: str, parameters: Mapping[str, Json]) -> Parameters:
        """Write a call's parameters alike, without those that only say what is taken anyway."""
        defaults = self._services[service].intents[method].defaults
        texts = {name: _write(value) for name, value in parameters.items() if value is not None}
        return frozenset(
            (name, text) for name, text in texts.items() if text not in {"", ANYTHING, defaults.get(name)}
        )

    def call(self, service: str, method: str, given: Mapping[str, Json]) -> JsonObject:
        """Answer a call as it was answered, or with what fits it.

        Raises:
            ToolFailure: the call failed in the dialogue.
        """
        wanted = self.normalize(service, method, given)
        answer = self._find_answer((service, method, wanted))
        if answer is not None and answer.failed:
            instead = dict(answer.rows[0]) if answer.rows else None
            raise ToolFailure(FailureCategory.NOT_FOUND, "That is not possible.", alternative=instead)
        rows = answer.rows if answer is not None else self._find(service, method, wanted)
        if not rows and self._services[service].intents[method].is_transactional:
            rows = ({name: _write(value) for name, value in given.items() if value is not None},)
        shown: list[Json] = [dict(row) for row in rows[:MOST_ROWS]]
        return {"results": shown, "count": len(rows)}

    def _find_answer(self, key: tuple[str, str, Parameters]) -> Answer | None:
        own = self._answers.get(key)
        return self._others._find_answer(key) if own is None and self._others is not None else own  # noqa: SLF001

    def _find(self, service: str, method: str, wanted: Parameters) -> tuple[Row, ...]:
        """Find rows that contradict nothing of what is wanted, each once."""
        fitting = [
            row
            for row in self._rows.get((service, method), ())
            if all(row.get(name, value).casefold() == value.casefold() for name, value in wanted)
        ]
        if self._others is not None:
            fitting += self._others._find(service, method, wanted)  # noqa: SLF001
        return tuple({tuple(sorted(row.items())): row for row in fitting}.values())


def _calls(dialogues: Iterable[Dialogue]) -> Iterator[tuple[str, ServiceCall, Answer]]:
    for dialogue in dialogues:
        for frame in (frame for turn in dialogue.turns for frame in turn.frames):
            if frame.call is not None:
                failed = any(act.name == "NOTIFY_FAILURE" for act in frame.acts)
                yield frame.service, frame.call, Answer(frame.results, failed)


def _write(value: Json) -> str:
    """Write a value as the services do: 3 and 3.0 alike."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)
