"""Creates test cases from feedback: the conversation up to the turn, and the expected outcome."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from orchestrator.errors import InvalidInput
from orchestrator.res.markup import to_plain
from orchestrator.types import JsonObject
from parley.evaluation.conversations import insert_names, read_conversations, read_file, values_of

_OF_ITS_SESSION = re.compile(r"_id$|^candidate$")
"""Members of an action's payload that only the session has that it was made in."""


def make_case(feedback: JsonObject, turns: Sequence[JsonObject]) -> JsonObject | None:
    """Write feedback on a turn as a conversation of `evaluations/`; None where it says nothing of the answer.

    Args:
        feedback: rating, comment and correction of a turn.
        turns: of its session with their times, oldest first, at least up to that turn.
    """
    taken: list[JsonObject] = []
    remembered: dict[str, str] = {}
    for turn in turns:
        entry: JsonObject = {"user": insert_names(turn["text"], remembered)} if turn["text"] else {}
        if turn["action"] is not None and turn["kind"] == "user":
            entry = {"action": _without_identifiers(turn["action"])}
        remembered |= values_of(turn)
        if entry:
            taken.append(entry)
        if turn["turn_id"] == feedback["turn_id"]:
            expected = _expect(feedback, turn, remembered)
            if not entry or not expected:
                return None
            entry["expect"] = expected
            name = f"{feedback['rating'] or 'corrected'} by {feedback['author'] or 'somebody'}, {turn['turn_id']}"
            return {"name": name, "now": turns[0]["accepted_at"], "turns": taken}
    return None


def _without_identifiers(action: JsonObject) -> JsonObject:
    payload = {name: value for name, value in action["payload"].items() if not _OF_ITS_SESSION.search(name)}
    return {"name": action["name"], "payload": payload}


def _expect(feedback: JsonObject, turn: JsonObject, remembered: Mapping[str, str]) -> JsonObject:
    """Return the expectations of the turn: the correction, the same if it was good, else anything else.

    `remembered`: what the answers have told; a reference among it is another in each run, so no slot is to hold it.
    """
    correction: JsonObject = feedback["correction"] or {}
    expected: JsonObject = {}
    if correction.get("dact"):
        expected["flow"] = correction["dact"]
    if correction.get("slots"):
        expected["slots"] = correction["slots"]
    rubric = [f"It says the same as: {correction['reply']}"] if correction.get("reply") else []
    if expected or rubric:
        return expected | ({"rubric": rubric} if rubric else {})
    if feedback["rating"] == "up":
        stack = [flow["dact"] for flow in turn["flows"]]
        expected = {
            "flows": stack,
            "completed": turn["completed"],
            "tools": [one["tool_id"] for one in turn["tools"]],
        }
        held: JsonObject = turn["flows"][-1]["slots"] if turn["flows"] else {}
        slots = {
            name: value for name, value in held.items() if insert_names(str(value), remembered) == str(value)
        }
        return expected | ({"slots": slots} if slots else {})
    if feedback["comment"]:
        return {"rubric": [f"It leaves no reason to say: {feedback['comment']}"]}
    said = to_plain(turn["reply"] or "").partition("\n")[0]
    return {"not_answer": re.escape(said)} if feedback["rating"] == "down" and said else {}


def add_cases(cases: Sequence[JsonObject], path: Path) -> int:
    """Add those of the cases to a file of conversations that it has not yet; gives how many these were.

    Raises:
        InvalidInput: the file holds something else.
    """
    known = {one.name for one in read_file(path).conversations} if path.exists() else set[str]()
    new = [case for case in cases if case["name"] not in known]
    if new:
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8").rstrip("\n") + "\n" if path.exists() else "conversations:\n"
        text = before + write_cases(new)
        try:
            read_conversations(text, path.name)
        except InvalidInput as error:
            raise InvalidInput(
                f"Can't add to {path}: it must end with its conversations.", field="into"
            ) from error
        path.write_text(text, encoding="utf-8")
    return len(new)


def write_cases(cases: Sequence[Mapping[str, object]]) -> str:
    """Write conversations as the items of a list in YAML."""
    text = yaml.safe_dump([dict(case) for case in cases], allow_unicode=True, sort_keys=False, width=110)
    return "".join(f"  {line}\n" for line in text.splitlines())
