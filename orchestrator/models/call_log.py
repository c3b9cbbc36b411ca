from dataclasses import asdict, dataclass, field

from orchestrator.errors import EndpointError
from orchestrator.ports.language_model import ChatMessage, ChatRequest, Usage
from orchestrator.ports.spending import Spent
from orchestrator.types import JsonObject


@dataclass(frozen=True, slots=True)
class Problem:
    model: str
    code: str
    said: EndpointError
    never_answered: bool

    def as_json(self) -> JsonObject:
        return {**asdict(self.said), "never_answered": self.never_answered}


@dataclass(slots=True)
class CallLog:
    """The record of one model call, for its signal.

    Attributes:
        model: the model that answered, as named by the endpoint.
        asked: the model of the last request, as configured.
        refused_by: the budget scope that blocked the call.
        requests: the number of requests sent, including retries.
        corrected: request fields that were omitted or changed after an endpoint rejected them.
        repaired: True if the model was asked to correct an unusable answer.
        doubled: True if a truncated answer was requested again with a higher token limit.
        shortened: True if the older half of the conversation was omitted because the request was too long.
        messages: the messages of the last request.
        answer: the answer to the last request, possibly incomplete.
    """

    model: str | None = None
    asked: str | None = None
    refused_by: str | None = None
    requests: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])
    corrected: list[str] = field(default_factory=list[str])
    spent: Spent = field(default_factory=Spent)
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    repaired: bool = False
    doubled: bool = False
    shortened: bool = False
    messages: tuple[ChatMessage, ...] = ()
    answer: ChatMessage | None = None

    def begin(self, model: str, request: ChatRequest) -> None:
        self.asked, self.messages, self.answer = model, request.messages, None

    def count(self, usage: Usage, spent: Spent) -> None:
        self.spent = self.spent.plus(spent)
        self.cached_tokens += usage.cached_tokens
        self.reasoning_tokens += usage.reasoning_tokens
