"""The dialogue state has one writer: outside of `orchestrator.dialogue` its fields are read, and its methods called (ST-1)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final

from orchestrator.dialogue.ambiguity import Ambiguity, AmbiguityHandler
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.records import DigressionRecord, EffectNote, Flags, PendingApproval, PlanStep
from orchestrator.dialogue.stack import FlowStack
from orchestrator.dialogue.state import DialogueState, History, Intake, Prediction
from tests.shape.sources import name_of, python_files

RECORDS: Final = (
    *(DialogueState, Prediction, History, Intake, Flags, DigressionRecord, FlowStack),
    *(AmbiguityHandler, Ambiguity, PendingApproval, EffectNote, PlanFlow, PlanStep),
)
# `notes` is scratch space of a flow's policy, and `data` of an execution.
FIELDS: Final = frozenset(one.name for kind in RECORDS for one in fields(kind)) - {"notes"}
CHANGING: Final = frozenset({"add", "append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "sort", "update"})
OUTSIDE: Final = ("agent", "memory", "models", "nlu", "pex", "plans", "res", "runtime", "tools", "domain")
# Records of other kinds that have a field of such a name, by the variable that holds them.
OTHERS: Final = frozenset({"self"})


def changed_fields(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the attributes that are assigned, deleted, or changed in place."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                yield node
            case ast.Subscript(value=ast.Attribute() as held, ctx=ast.Store() | ast.Del()):
                yield held
            case ast.Call(func=ast.Attribute(attr=name, value=ast.Attribute() as held)) if name in CHANGING:
                yield held


def writes(path: Path) -> Iterator[str]:
    for node in changed_fields(ast.parse(path.read_text(encoding="utf-8"))):
        held_by = ast.unparse(node.value)
        if node.attr in FIELDS and held_by not in OTHERS:
            yield f"{name_of(path)}:{node.lineno}: {held_by}.{node.attr}"


def test_the_state_is_written_in_dialogue_alone() -> None:
    folders = [f"orchestrator/{name}" for name in OUTSIDE]
    found = [write for path in python_files(*folders) for write in writes(path)]

    assert not found, f"{len(found)} writes:\n" + "\n".join(found)
