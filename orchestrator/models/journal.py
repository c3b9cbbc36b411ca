"""Model calls as journal steps, so that a retried turn doesn't repeat answered calls (RT-8).

Failures are not stored, because a later attempt may succeed.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from orchestrator.models.templates import encode_data
from orchestrator.turns.step import NotBegun, UnknownOutcome
from orchestrator.types import Json

KIND = "model"


class StepCaller(Protocol):
    async def call(
        self, key: str, kind: str, request: Json, run: Callable[[str], Awaitable[Json]], *, idempotent: bool
    ) -> Json | UnknownOutcome | NotBegun:
        """Return the recorded result of `key`, or run the step and record its result."""
        ...


@dataclass(slots=True)
class CallJournal:
    """The model calls of one attempt at a turn.

    Calls are identified by content, not by position. Therefore, an attempt that takes a different path never
    receives the answer to a different question.
    """

    steps: StepCaller
    asked: Counter[str] = field(default_factory=Counter[str])

    async def once(self, prompt_id: str, question: Json, run: Callable[[], Awaitable[Json]]) -> Json:
        """Return the recorded answer to a question, or request and record an answer.

        `question`: identifies the call by its content. Raises errors from `run` and the journal.
        """
        digest = blake2b(encode_data(question).encode(errors="surrogatepass"), digest_size=12).hexdigest()
        name = f"{KIND}:{prompt_id}:{digest}"
        self.asked[name] += 1
        key = f"{name}:{self.asked[name]}"
        answer = await self.steps.call(key, KIND, digest, lambda _key: run(), idempotent=True)
        assert not isinstance(answer, UnknownOutcome | NotBegun), (
            "an idempotent step is run again, never unknown"
        )
        return answer
