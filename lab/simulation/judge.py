"""Grade simulated conversations: calls, results and records must match the goal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lab.evaluation.conversations import TurnOutcome, find_faults
from lab.simulation.goals import Goal, expected_arguments, find_acting
from lab.simulation.user import Move, Purpose
from orchestrator.domain.evaluations import ExpectEntry
from orchestrator.domain.model import Domain
from orchestrator.types import Json, JsonObject, ToolId

Records = Mapping[str, Mapping[str, JsonObject]]
"""Documents by collection and key."""


class Judge:
    def __init__(self, domain: Domain, goal: Goal) -> None:
        self._domain, self._goal = domain, goal
        self._acting = find_acting(goal.flow, domain)
        self._was_offered = False

    def judge(
        self, move: Move, turn: JsonObject, observed: JsonObject, written: Sequence[tuple[str, JsonObject]]
    ) -> TurnOutcome:
        """Grade a turn. `observed`: its results. `written`: the documents that it created, with their collections."""
        expected = {tool: self._list_wanted(tool, some) for tool, some in self._expected().items()}
        asks = move.purpose is Purpose.ASK and not self._goal.flow.recipe
        expect = ExpectEntry(
            flow=self._goal.flow.dact if asks else None,
            arguments={
                call["tool_id"]: one
                for call in turn["tools"]
                for one in expected.get(call["tool_id"], ())[:1]
            },
        )
        faults = [*find_faults(ExpectEntry(), observed)]
        if not (turn["reply"] or "").strip():
            faults.append("the assistant didn't answer")
        faults += self._find_wrong_arguments(turn["tools"], expected)
        did = [call["tool_id"] for call in turn["tools"] if call["status"] == "ok" and self._acts(call)]
        if did:
            faults += self._find_unwanted(move, did)
            wanted = [one for some in self._expected().values() for one in some]
            faults += _find_wrong_results(did[-1], _values_of_frame(turn), written, wanted)
        self._was_offered = (turn["ambiguity"] or {}).get("level") == "confirmation"
        return TurnOutcome(move.text, expect, observed, faults)

    def _expected(self) -> Mapping[ToolId, Sequence[JsonObject]]:
        return expected_arguments(self._goal, self._domain)

    def _list_wanted(self, tool_id: ToolId, some: Sequence[JsonObject]) -> list[JsonObject]:
        """Return sets of expected arguments, without arguments that the tool does not accept."""
        known: JsonObject = self._domain.tools[tool_id].input_schema.get("properties") or {}
        return [{name: value for name, value in one.items() if name in known} for one in some]

    def _acts(self, call: JsonObject) -> bool:
        tool = self._domain.tools.get(call["tool_id"])
        return call["tool_id"] in self._acting or (tool is not None and tool.has_effect)

    def _find_unwanted(self, move: Move, did: Sequence[ToolId]) -> Iterator[str]:
        for tool in did:
            if tool not in self._acting:
                yield f"{tool} was called, but is unrelated to the goal"
            elif move.purpose is Purpose.REFUSE:
                yield f"{tool} was called, although the user refused"
            elif self._acting[tool] and not (self._was_offered and move.purpose is Purpose.AGREE):
                yield f"{tool} was called without a confirmation"

    def _find_wrong_arguments(
        self, calls: Sequence[JsonObject], expected: Mapping[ToolId, Sequence[JsonObject]]
    ) -> Iterator[str]:
        for call in calls:
            given, wanted = call["arguments"], expected.get(call["tool_id"], ())
            if call["tool_id"] not in self._acting:  # a lookup can omit uncertain values
                wanted = [{name: value for name, value in one.items() if name in given} for one in wanted]
            if wanted and not any(_fits(given, one) for one in wanted):
                yield f"{call['tool_id']} was called with {given}, not with {wanted[0]}"


def _values_of_frame(turn: JsonObject) -> JsonObject:
    frame = turn["frame"] or {}
    return frame["data"] if isinstance(frame.get("data"), dict) else {}


def _find_wrong_results(
    tool: ToolId, data: JsonObject, written: Sequence[tuple[str, JsonObject]], wanted: Sequence[JsonObject]
) -> Iterator[str]:
    made = [
        (f"{tool} returned", data),
        *((f"{collection} received", document) for collection, document in written),
    ]
    for words, values in made:
        known = [{name: value for name, value in one.items() if name in values} for one in wanted]
        if known and not any(_fits(values, one) for one in known):
            other = {name: value for name, value in known[0].items() if not _is_same(values[name], value)}
            yield f"{words} { {name: values[name] for name in other} }, not {other}"


def _fits(values: Mapping[str, Any], wanted: JsonObject) -> bool:
    return all(_is_same(values.get(name), value) for name, value in wanted.items())


def _is_same(found: Json, wanted: Json) -> bool:
    """Compare two values leniently: ignore case, leading and trailing spaces and dots, and differing types."""
    if isinstance(found, str) and isinstance(wanted, str):
        return found.strip(" .").casefold() == wanted.strip(" .").casefold()
    return found == wanted or (found is not None and type(found) is not type(wanted))
