"""Format values, messages, flows and plans for the terminal, without control characters."""

from typing import Any

from orchestrator.res.markup import to_plain
from orchestrator.res.templates import INVISIBLE

# Kinds of questions that a bare number answers. For other questions, a number may be a value, so users choose
# a suggestion with `/1`.
NUMBERED = frozenset({"options", "confirmation", "approval"})

# Lines that end a chat, in a terminal and in a pipe.
LEAVING = ("/quit", "/exit")


def clean(value: Any) -> str:
    """Format a value on one line, without control characters. None becomes a dash, and a boolean becomes yes or no."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return INVISIBLE.sub("", str(value)).replace("\n", " ").replace("\t", " ")


def clean_lines(text: str) -> str:
    """Remove control characters except line breaks. Tabs become spaces."""
    return INVISIBLE.sub("", text.replace("\t", " "))


def plain(message: str) -> str:
    """Return a Markdown message as plain text, without control characters."""
    return clean_lines(to_plain(message))


def takes_numbers(turn: dict[str, Any]) -> bool:
    """Return True if a bare number answers the turn's question."""
    return (turn.get("interaction") or {}).get("kind") in NUMBERED


def choose_action(turn: dict[str, Any] | None, text: str) -> dict[str, Any] | None:
    """Return the suggested reply that the user chose by its number, or None."""
    slashed = text.startswith("/")
    number = text.removeprefix("/")
    if turn is None or not (number.isascii() and number.isdigit()) or len(number) > 2:
        return None
    actions = turn.get("actions") or []
    if not (slashed or takes_numbers(turn)) or not 1 <= int(number) <= len(actions):
        return None
    return actions[int(number) - 1]


def describe_status(turn: dict[str, Any] | None, progress: str = "") -> str:
    """Format up to four open flows on one line, the current one first, followed by `progress`."""
    flows = (turn or {}).get("flows") or []
    if not flows:
        return "no open task"
    described = [describe_flow(flow) for flow in reversed(flows)]
    names = [f"{name} ({state[:1].lower()}{state[1:]})" for name, state in described]
    return " ‹ ".join([*names[:4], *(["…"] if len(names) > 4 else [])]) + progress


def describe_flow(flow: dict[str, Any]) -> tuple[str, str]:
    reason = f", {clean(flow['reason']).replace('_', ' ')}" if flow.get("reason") else ""
    return clean(flow["dact"]), f"{clean(flow['state'])}{reason}"


def describe_plan(plan: dict[str, Any]) -> list[str]:
    """Return lines with a plan's goal and progress, the state of each step, and the last tree search."""
    reason = f", {plan['reason']}" if plan.get("reason") else ""
    head = f"{plan['dact']} ({plan['state']}{reason}), {plan['progress']} done, revision {plan['revision']}"
    lines = [f"{'plan':<12} {head}", f"{'goal':<12} {plan['goal']}"]
    for number, step in enumerate(plan["steps"], start=1):
        why = f": {step['note']}" if step.get("note") else ""
        state = step["reason"] if step["state"] in {"Invalid", "Pending"} else step["state"]
        lines.append(f"{f'step {number}':<12} {step['purpose']} [{step['dact']}] {state}{why}")
    return lines + _describe_search(plan)


def _describe_search(plan: dict[str, Any]) -> list[str]:
    """Return lines with the plans from the last tree search, their scores and faults. ``*`` marks the chosen plan."""
    searches = [one["search"] for one in plan.get("revisions") or [] if one.get("search")]
    if not searches:
        return []
    lines = [f"Plans compared, in {searches[-1]['calls']} model calls:"]
    for node in searches[-1]["nodes"][1:]:
        mark = "*" if node["node"] == searches[-1]["chosen"] else " "
        steps = "; ".join(str(step["purpose"]) for step in node["state"])
        lines.append(f"{mark} {node['score'] or 0.0:.2f} {steps}")
        lines += [f"       {fault}" for fault in node["faults"]]
    return lines


def describe_progress(plan: dict[str, Any]) -> str:
    """Format a plan's progress. Return an empty string if the plan has no steps."""
    steps = (plan.get("body") or plan).get("steps") or []
    done = sum(1 for step in steps if step.get("state") == "Completed" or step.get("done"))
    return f" · plan {done}/{len(steps)}" if steps else ""
