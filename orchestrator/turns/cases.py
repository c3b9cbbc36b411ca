import re
from collections.abc import Mapping, Sequence

from orchestrator.types import Json, JsonObject, is_object

REFERENCE = re.compile(r"\b(?=\w*\d)(?=\w*[A-Z])[A-Z0-9]{5,}\b")
"""Pattern for references that tools create, such as booking numbers. References differ in each run."""
_OF_ITS_SESSION = re.compile(r"_id$|^candidate$")
"""Pattern for names of payload members whose values are valid only in the original session."""


def make_case(
    turns: Sequence[JsonObject], turn_id: str, feedback: JsonObject | None = None
) -> JsonObject | None:
    """Return the conversation up to a turn as an evaluation case.

    Return None if the turn is not in `turns` or has no user input, or if its feedback yields no expectation.

    Args:
        turns: the session's turns with their times, oldest first, at least up to `turn_id`.
        turn_id: the turn that the case is about.
        feedback: the turn's rating, comment and correction, or None to leave `expect` empty for the author.
    """
    taken: list[JsonObject] = []
    remembered: dict[str, str] = {}
    for turn in turns:
        entry = _write_input(turn, remembered) if turn["kind"] == "user" else {}
        remembered |= values_of(turn)
        if entry:
            taken.append(entry)
        if turn["turn_id"] == turn_id:
            expected = {} if feedback is None else _expect(feedback, turn, remembered)
            if not entry or (feedback is not None and not expected):
                return None
            entry["expect"] = expected
            name = f"{_name(feedback)}, {turn_id}"
            return {"name": name, "now": turns[0]["accepted_at"], "turns": taken}
    return None


def _write_input(turn: JsonObject, remembered: Mapping[str, str]) -> JsonObject:
    if turn["action"] is not None:
        return {"action": _without_identifiers(turn["action"])}
    return {"user": insert_names(turn["text"], remembered)} if turn["text"] else {}


def _name(feedback: JsonObject | None) -> str:
    if feedback is None:
        return "from the inspector"
    return f"{feedback['rating'] or 'corrected'} by {feedback['author'] or 'an unknown author'}"


def _without_identifiers(action: JsonObject) -> JsonObject:
    payload = {name: value for name, value in action["payload"].items() if not _OF_ITS_SESSION.search(name)}
    return {"name": action["name"], "payload": payload}


def _expect(feedback: JsonObject, turn: JsonObject, remembered: Mapping[str, str]) -> JsonObject:
    """Return the expectations for a turn, based on its correction, rating or comment, or an empty object.

    `remembered`: values in the answers so far. After a thumbs-up, slots that contain references from these
    answers are omitted, because references differ in each run.
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
        outcome = outcome_of(turn)
        held: JsonObject = outcome.pop("slots")
        slots = {
            name: value for name, value in held.items() if insert_names(str(value), remembered) == str(value)
        }
        return outcome | ({"slots": slots} if slots else {})
    if feedback["comment"]:
        return {"rubric": [f"This comment does not apply to it: {feedback['comment']}"]}
    said = (turn["reply"] or "").partition("\n")[0]
    return {"not_answer": re.escape(said)} if feedback["rating"] == "down" and said else {}


def outcome_of(turn: JsonObject) -> JsonObject:
    """Return a turn's flows, completed flows, tools and slots in the format of a case's `expect`."""
    return {
        "flows": [flow["dact"] for flow in turn["flows"]],
        "completed": turn["completed"],
        "tools": [one["tool_id"] for one in turn["tools"]],
        "slots": turn["flows"][-1]["slots"] if turn["flows"] else {},
    }


def insert_names(text: str, remembered: Mapping[str, str]) -> str:
    """Replace references from earlier answers with placeholders such as ``<booking_ref>``."""
    for name, value in remembered.items():
        if REFERENCE.fullmatch(value):
            text = re.sub(rf"\b{value}\b", f"<{name}>", text, flags=re.IGNORECASE)
    return text


def values_of(turn: JsonObject) -> dict[str, str]:
    """Return the values in a turn's frame as text, by name, or an empty dict if the frame has no data object."""
    frame: JsonObject = turn["frame"] or {}
    data: Json = frame.get("data")
    return {name: str(value) for name, value in data.items()} if is_object(data) else {}
