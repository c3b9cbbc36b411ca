"""The public Python API for domain authors. Each name is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.dialogue.flow import PlanFlow as PlanFlow
    from orchestrator.dialogue.notice import NoticeKind as NoticeKind
    from orchestrator.dialogue.questions import AskSlot as AskSlot
    from orchestrator.dialogue.questions import Option as Option
    from orchestrator.dialogue.records import Frame as Frame
    from orchestrator.dialogue.slots import SlotSource as SlotSource
    from orchestrator.domain.export_links import ExportLink as ExportLink
    from orchestrator.domain.model import EntityValue as EntityValue
    from orchestrator.domain.services import Accepted as Accepted
    from orchestrator.domain.services import QueryRows as QueryRows
    from orchestrator.domain.services import Records as Records
    from orchestrator.domain.services import Service as Service
    from orchestrator.domain.services import ServiceContext as ServiceContext
    from orchestrator.domain.services import SqlRunner as SqlRunner
    from orchestrator.domain.services import Table as Table
    from orchestrator.domain.services import ToolCall as ToolCall
    from orchestrator.errors import FailureCategory as FailureCategory
    from orchestrator.errors import NotFound as NotFound
    from orchestrator.errors import SessionClosed as SessionClosed
    from orchestrator.errors import ToolFailure as ToolFailure
    from orchestrator.memory.business_context import Documents as Documents
    from orchestrator.memory.user_memory import Memory as Memory
    from orchestrator.pex.documents import AnswerFromDocuments as AnswerFromDocuments
    from orchestrator.pex.execution import Ending as Ending
    from orchestrator.pex.execution import Execution as Execution
    from orchestrator.pex.execution import Failed as Failed
    from orchestrator.pex.execution import NeedsInput as NeedsInput
    from orchestrator.pex.execution import Recover as Recover
    from orchestrator.pex.execution import Recovery as Recovery
    from orchestrator.pex.frames import make_frame as make_frame
    from orchestrator.pex.policy import BasePolicy as BasePolicy
    from orchestrator.plans.policy import PlanPolicy as PlanPolicy
    from orchestrator.types import Dact as Dact
    from orchestrator.types import Json as Json
    from orchestrator.types import JsonObject as JsonObject
    from orchestrator.types import SessionId as SessionId
    from orchestrator.types import TenantId as TenantId

_MODULES = {
    "dialogue.flow": ("PlanFlow",),
    "dialogue.questions": ("AskSlot", "Option"),
    "dialogue.records": ("Frame",),
    "dialogue.notice": ("NoticeKind",),
    "dialogue.slots": ("SlotSource",),
    "domain.export_links": ("ExportLink",),
    "domain.model": ("EntityValue",),
    "domain.services": (
        "Accepted",
        "QueryRows",
        "Records",
        "Service",
        "ServiceContext",
        "SqlRunner",
        "Table",
        "ToolCall",
    ),
    "errors": ("FailureCategory", "NotFound", "SessionClosed", "ToolFailure"),
    "memory.business_context": ("Documents",),
    "memory.user_memory": ("Memory",),
    "pex.documents": ("AnswerFromDocuments",),
    "pex.execution": ("Ending", "Execution", "Failed", "NeedsInput", "Recover", "Recovery"),
    "pex.frames": ("make_frame",),
    "pex.policy": ("BasePolicy",),
    "plans.policy": ("PlanPolicy",),
    "types": ("Dact", "Json", "JsonObject", "SessionId", "TenantId"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'parley' has no attribute {name!r}")
    return getattr(import_module(f"orchestrator.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
