import re

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


def _is_alike(step: PlanStep, other: PlanStep) -> bool:
    shared = step.slots.keys() & other.slots.keys()
    return len(shared) >= _ALIKE and all(step.slots[name] == other.slots[name] for name in shared)
