"""Outcomes of stack operations, as closed sets of records, and the depth limit (FS-12)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from orchestrator.dialogue.flow import BaseFlow


class OnLimit(StrEnum):
    """Strategies for a flow that would exceed the domain's depth limit (FS-12)."""

    CANCEL_OLDEST = "cancel_oldest"
    REJECT_NEW = "reject_new"
    ASK_USER = "ask_user"


@dataclass(frozen=True, slots=True)
class DepthLimit:
    """A limit of `max_depth` tasks. A plan with all its flows counts as one task."""

    max_depth: int
    strategy: OnLimit = OnLimit.CANCEL_OLDEST


@dataclass(frozen=True, slots=True)
class Pushed:
    """The result if the flow was pushed. `cancelled`: tasks canceled to make room."""

    flow: BaseFlow
    cancelled: tuple[BaseFlow, ...] = ()


@dataclass(frozen=True, slots=True)
class Existing:
    """The result if a flow of the same name was already on the stack and was resumed instead (FS-10)."""

    flow: BaseFlow


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The result if the stack is full. With `ask_user`, the user can cancel one of `choices`."""

    strategy: OnLimit
    max_depth: int
    choices: tuple[BaseFlow, ...]


PushResult: TypeAlias = Pushed | Existing | LimitReached
