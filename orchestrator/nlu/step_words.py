import re
from collections.abc import Iterable

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.records import PlanStep

_WORD = re.compile(r"\w+")
_COMMON = frozenset({"a", "an", "the", "my", "your", "our", "of", "for", "to", "and", "step", "part"})
_ALIKE = 2
"""Minimum number of values that two steps for the same part of the plan have in common."""


def find_words(text: str) -> frozenset[str]:
    """Return a text's distinctive words, in lowercase."""
    return frozenset(_WORD.findall(text.replace("_", " ").casefold())) - _COMMON


def list_step_words(plan: PlanFlow, step: PlanStep) -> frozenset[str]:
    """Return the words that identify a step: its own words, and names of steps for the same part of the plan.

    “Back” identifies the return booking, because the step “back” looks for flights with the same values.
    """
    alike = (other.name for other in plan.steps if other is not step and _is_alike(step, other))
    return find_words(f"{step.name} {step.purpose} {step.dact}").union(*map(find_words, alike))


def find_step(plan: PlanFlow, steps: Iterable[PlanStep], said: str) -> PlanStep | None:
    """Return the one of `steps` that shares the most words with `said`, or None if there is no match or a tie."""
    mentioned = find_words(said)
    shared = [(len(mentioned & list_step_words(plan, step)), step) for step in steps]
    best = max((count for count, _ in shared), default=0)
    fitting = [step for count, step in shared if count == best > 0]
    return fitting[0] if len(fitting) == 1 else None


def _is_alike(step: PlanStep, other: PlanStep) -> bool:
    shared = step.slots.keys() & other.slots.keys()
    return len(shared) >= _ALIKE and all(step.slots[name] == other.slots[name] for name in shared)
