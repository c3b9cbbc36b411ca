"""Compile a domain's primitive acts (FS-5)."""

from collections.abc import Mapping

from orchestrator.domain.acts import DIGITS, SHARED, Act
from orchestrator.domain.compile.problems import Problems, SourceFile


def compile_acts(declared: Mapping[str, str], file: SourceFile, problems: Problems) -> Mapping[str, Act]:
    """Return the declared acts by digit. Default: the shared acts."""
    if not declared:
        return SHARED
    words = {act.name: act.words for act in SHARED.values()}
    acts: dict[str, Act] = {}
    for name, written in declared.items():
        digit = written.upper()
        if len(digit) != 1 or digit not in DIGITS:
            problems.add(file, ("acts", name), f"should be one hexadecimal digit (it is {written!r})")
        elif digit in acts:
            problems.add(file, ("acts", name), f"{digit!r} is already assigned to {acts[digit].name}")
        else:
            acts[digit] = Act(name, words.get(name, frozenset()))
    return dict(sorted(acts.items())) or SHARED
