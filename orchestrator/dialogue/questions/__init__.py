"""All questions of the assistant, by kind: their texts, their options, and the action of each answer.

To add one, write its class here and add it to `AnyQuestion`; no other package decides by kind.
"""

from typing import Annotated, TypeAlias

from pydantic import Field

from orchestrator.dialogue.questions.base import Level, Option, Question, Wording
from orchestrator.dialogue.questions.calls import (
    CallQuestion,
    PendingCall,
    StoppedCall,
    TryAgain,
    UnknownOutcome,
)
from orchestrator.dialogue.questions.done import SettleDone
from orchestrator.dialogue.questions.slots import AskSlot, ChangeWhat, ChooseRow, ChooseValue, WhichSlot
from orchestrator.dialogue.questions.tasks import ChooseTask, ChooseToStop, LeftOpen, NextTask, Unclear

AnyQuestion: TypeAlias = Annotated[
    PendingCall
    | StoppedCall
    | UnknownOutcome
    | TryAgain
    | AskSlot
    | ChooseValue
    | ChooseRow
    | ChangeWhat
    | WhichSlot
    | Unclear
    | ChooseTask
    | ChooseToStop
    | NextTask
    | LeftOpen
    | SettleDone,
    Field(discriminator="kind"),
]

__all__ = [
    "AnyQuestion",
    "AskSlot",
    "CallQuestion",
    "ChangeWhat",
    "ChooseRow",
    "ChooseTask",
    "ChooseToStop",
    "ChooseValue",
    "LeftOpen",
    "Level",
    "NextTask",
    "Option",
    "PendingCall",
    "Question",
    "SettleDone",
    "StoppedCall",
    "TryAgain",
    "Unclear",
    "UnknownOutcome",
    "WhichSlot",
    "Wording",
]
