"""Grade answers by a rubric: rules check the text, and a model grades criteria written as sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.domain.configuration import DomainConfig
from orchestrator.domain.evaluations import CriterionEntry
from orchestrator.models.calling import CallContext
from orchestrator.models.engineer import PromptEngineer
from orchestrator.models.schemas import bounded_text, closed, list_of
from orchestrator.ports.language_model import MODEL_FAILURES
from orchestrator.types import Json, JsonObject, SessionId, TurnId

PROMPT = "eval_judge"
LONGEST_REASON = 300
MOST_BEFORE = 10
"""Maximum number of earlier messages shown to the judge."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade of a criterion. `met`: whether the answer meets the criterion, or None if it was not graded."""

    criterion: str
    met: bool | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that grades answers. `assistant`: a description of the assistant."""

    engineer: PromptEngineer
    assistant: str

    @classmethod
    def of(cls, engineer: PromptEngineer, config: DomainConfig) -> Judge:
        return cls(engineer, config.description or config.persona.name)

    async def judge(
        self, criteria: Sequence[str], said: str, answer: str, before: Sequence[str]
    ) -> list[Verdict]:
        """Ask the model to grade the answer to the message `said`. If the model fails, all criteria stay ungraded.

        `before`: earlier messages of the conversation.
        """
        variables: dict[str, Json] = {
            "assistant": self.assistant,
            "criteria": list(criteria),
            "said": said,
            "answer": answer,
            "before": list(before[-MOST_BEFORE:]),
        }
        call = CallContext(session_id=SessionId("session_judged"), turn_id=TurnId("turn_judged"))
        try:
            given = await self.engineer.structured(PROMPT, variables, verdicts_schema(len(criteria)), call)
        except MODEL_FAILURES as error:
            return [Verdict(one, None, f"the judge didn't return a verdict: {error}") for one in criteria]
        return [
            Verdict(one, verdict["met"], verdict["why"])
            for one, verdict in zip(criteria, given["verdicts"], strict=True)
        ]


def verdicts_schema(count: int) -> JsonObject:
    verdict = closed(met={"type": "boolean"}, why=bounded_text(LONGEST_REASON))
    return closed(verdicts={**list_of(verdict, count), "minItems": count})


async def grade_answer(
    rubric: Sequence[CriterionEntry], judge: Judge | None, said: str, answer: str, before: Sequence[str]
) -> list[Verdict]:
    verdicts = [verdict for one in rubric for verdict in _apply_rules(one, answer)]
    sentences = [one.meets for one in rubric if one.meets is not None]
    if not sentences:
        return verdicts
    if judge is None:
        return verdicts + [Verdict(one, None, "a model must grade this criterion") for one in sentences]
    return verdicts + await judge.judge(sentences, said, answer, before)


def _apply_rules(criterion: CriterionEntry, answer: str) -> list[Verdict]:
    found: list[Verdict] = []
    if (pattern := criterion.says) is not None:
        found.append(Verdict(f"says {pattern!r}", re.search(pattern, answer) is not None))
    if (pattern := criterion.says_not) is not None:
        found.append(Verdict(f"does not say {pattern!r}", re.search(pattern, answer) is None))
    if (most := criterion.most_words) is not None:
        words = len(answer.split())
        found.append(Verdict(f"has at most {most} words", words <= most, f"the answer has {words}"))
    if (asks := criterion.asks) is not None:
        ends = answer.rstrip().endswith("?")
        found.append(
            Verdict("ends with a question" if asks else "does not end with a question", ends is asks)
        )
    return found
