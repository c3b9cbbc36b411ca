"""The assistant's questions: their texts, their options, and the action for each answer.

To add a question, define its class in this package and add it to `AnyQuestion`.
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
