"""Handlers that apply a message to the stack, by kind of message (IR-1).

NLU interprets messages, and PEX runs the resulting flows.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from orchestrator.agent.messages.answers import confirm, deny, take_value
from orchestrator.agent.messages.cancellation import cancel_task
from orchestrator.agent.messages.correction import take_correction
from orchestrator.agent.messages.digression import chat, digress
from orchestrator.agent.messages.not_understood import be_unsure
from orchestrator.agent.messages.plan_change import change_plan
from orchestrator.agent.messages.resumption import resume_task
from orchestrator.agent.messages.task import take_task
from orchestrator.context import TurnContext
from orchestrator.dialogue.understanding import MessageKind, Understanding

Handle: TypeAlias = Callable[[TurnContext, Understanding], None]

MESSAGES: Mapping[MessageKind, Handle] = {
    MessageKind.TASK: take_task,
    MessageKind.SLOT_VALUE: take_value,
    MessageKind.CORRECTION: take_correction,
    MessageKind.CONFIRMATION: confirm,
    MessageKind.DENIAL: deny,
    MessageKind.CANCELLATION: cancel_task,
    MessageKind.RESUMPTION: resume_task,
    MessageKind.DIGRESSION: digress,
    MessageKind.CHITCHAT: chat,
    MessageKind.PLAN_CHANGE: change_plan,
    MessageKind.UNKNOWN: be_unsure,
}
