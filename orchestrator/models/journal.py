"""Model calls as steps of a turn: what a model has answered is not asked again when a turn is retried (RT-8).

The journal itself belongs to whoever runs the turn. Failures are not kept: a later attempt may fare better.
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
    """What is asked of a turn's journal."""

    async def call(
        self, key: str, kind: str, request: Json, run: Callable[[str], Awaitable[Json]], *, idempotent: bool
    ) -> Json | UnknownOutcome | NotBegun:
        """Answer from the journal, or run and record the result under `key`."""
        ...


@dataclass(slots=True)
class CallJournal:
    """The model calls of one attempt of one turn.

    A call is found by what is asked, not by its place in the turn: an attempt that takes another way,
    because a model failed this time, asks anew instead of getting the answer to another question.
    """

    steps: StepCaller
    asked: Counter[str] = field(default_factory=Counter[str])

    async def once(self, prompt_id: str, question: Json, run: Callable[[], Awaitable[Json]]) -> Json:
        """Give the recorded answer to a question, or ask and record. Raises what `run` and the journal raise."""
        digest = blake2b(encode_data(question).encode(errors="surrogatepass"), digest_size=12).hexdigest()
        name = f"{KIND}:{prompt_id}:{digest}"
        self.asked[name] += 1
        key = f"{name}:{self.asked[name]}"
        answer = await self.steps.call(key, KIND, digest, lambda _key: run(), idempotent=True)
        assert not isinstance(answer, UnknownOutcome | NotBegun), (
            "an idempotent step is run again, never unknown"
        )
        return answer
