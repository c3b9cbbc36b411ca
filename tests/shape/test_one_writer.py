"""Only `orchestrator.dialogue` writes the dialogue state; other code only reads its fields (ST-1)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final

from orchestrator.dialogue.ambiguity import Ambiguity, AmbiguityHandler
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.progress import Progress
from orchestrator.dialogue.records import (
    DigressionRecord,
    EffectNote,
    Flags,
    History,
    Intake,
    PendingApproval,
    PlanStep,
)
from orchestrator.dialogue.stack import FlowStack
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import Prediction
from tests.shape.sources import name_of, python_files, tree_of

RECORDS: Final = (
    *(DialogueState, Prediction, History, Intake, Flags, DigressionRecord, FlowStack),
    *(AmbiguityHandler, Ambiguity, PendingApproval, EffectNote, PlanFlow, PlanStep, Progress),
)
FIELDS: Final = frozenset(one.name for kind in RECORDS for one in fields(kind))
CHANGING: Final = frozenset(
    {
        "add",
        "append",
        "appendleft",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "remove",
        "reverse",
    }
    | {"setdefault", "sort", "update"}
)
OUTSIDE: Final = ("agent", "domain", "memory", "models", "nlu", "pex", "plans", "res", "runtime", "tools")
# Objects with equal field names that are not part of the state: a turn's changes and log, and model records.
OTHERS: Final = frozenset({"self", "answer", "changes", "changes.approvals", "log", "reservation", "run"})


def changed_fields(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Yield attributes that are assigned, deleted, or changed in place, but not through other names."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                yield node
            case ast.Subscript(value=ast.Attribute() as held, ctx=ast.Store() | ast.Del()):
                yield held
            case ast.Call(func=ast.Attribute(attr=name, value=ast.Attribute() as held)) if name in CHANGING:
                yield held


def writes(path: Path) -> Iterator[str]:
    for node in changed_fields(tree_of(path)):
        if node.attr not in FIELDS:
            continue
        held_by = ast.unparse(node.value)
        if not any(held_by == other or held_by.endswith(f".{other}") for other in OTHERS):
            yield f"{name_of(path)}:{node.lineno}: {held_by}.{node.attr}"


def test_the_state_is_written_in_dialogue_alone() -> None:
    folders = [f"orchestrator/{name}" for name in OUTSIDE]
    found = [write for path in python_files(*folders) for write in writes(path)]

    assert not found, f"{len(found)} writes:\n" + "\n".join(found)


def test_every_way_of_writing_is_found() -> None:
    """Assignment, addition, deletion, by key, and by a method that changes in place."""
    source = "a.x = 1; b.x += 1; del c.x; d.x[0] = 1; del e.x[0]; f.x.append(1); g.x.index(1); h.x"

    assert [ast.unparse(node.value) for node in changed_fields(ast.parse(source))] == list("abcdef")


def test_consent_is_written_in_one_module() -> None:
    """PX-18: a single module writes the user's consent; other code reads it."""
    found = {
        name_of(path)
        for path in python_files("orchestrator")
        for node in changed_fields(tree_of(path))
        if node.attr == "consent"
    }

    assert found == {"orchestrator/dialogue/consent.py"}
