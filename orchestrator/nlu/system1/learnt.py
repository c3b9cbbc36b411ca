"""The trained parts of the local classifier for a domain."""

from collections.abc import Mapping
from typing import Protocol

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.domain.model import Answer
from orchestrator.domain.tool_schema import RowsSpec
from orchestrator.nlu.system1.classifier import Classifier
from orchestrator.nlu.system1.extract.extractor import Extractor
from orchestrator.nlu.system1.message_kind import Decider
from orchestrator.nlu.system1.slot_assignment import SlotAssigner
from orchestrator.types import Dact, ToolId


class Learnt(Protocol):
    """The trained parts of the local classifier, with the domain data for them."""

    flows: Mapping[Dact, FlowSpec]
    extractor: Extractor
    classifier: Classifier
    slots: SlotAssigner
    answers: Mapping[str, Answer]
    likely: float
    decider: Decider
    rows: Mapping[ToolId, RowsSpec]
