"""The record of one model call."""

from dataclasses import asdict, dataclass, field

from orchestrator.errors import EndpointError
from orchestrator.ports.language_model import ChatMessage, ChatRequest, Usage
from orchestrator.ports.spending import Spent
from orchestrator.types import JsonObject


@dataclass(frozen=True, slots=True)
class Problem:
    """A failed request."""

    model: str
    code: str
    said: EndpointError
    never_answered: bool

    def as_json(self) -> JsonObject:
        return {**asdict(self.said), "never_answered": self.never_answered}


@dataclass(slots=True)
class CallLog:
    """The record of one model call, for its signal."""

    model: str | None = None
    """The answering model, as named by the endpoint."""
    asked: str | None = None
    """The last model called, as configured."""
    refused_by: str | None = None
    """The budget scope that rejected the call."""
    requests: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])
    corrected: list[str] = field(default_factory=list[str])
    """Parts of the request that were omitted or rewritten after an endpoint rejected them."""
    spent: Spent = field(default_factory=Spent)
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    repaired: bool = False
    doubled: bool = False
    shortened: bool = False
    """The older half of the conversation was omitted because the request was too long."""
    messages: tuple[ChatMessage, ...] = ()
    """The last messages sent."""
    answer: ChatMessage | None = None
    """The possibly partial answer to them."""

    def begin(self, model: str, request: ChatRequest) -> None:
        self.asked, self.messages, self.answer = model, request.messages, None

    def count(self, usage: Usage, spent: Spent) -> None:
        self.spent = self.spent.plus(spent)
        self.cached_tokens += usage.cached_tokens
        self.reasoning_tokens += usage.reasoning_tokens
