"""Answer questions from documents, and cite the sources (CO-4).

The policy quotes the best passage. If a model is available, the flow's skill answers from the same passages
instead. If the skill fails, the quotation is used.
"""

from orchestrator.memory.quoting import find_unfounded_numbers, quote
from orchestrator.memory.tokenizer import share_of
from orchestrator.pex.calls.guarded_call import call_in_order
from orchestrator.pex.execution import Ending, Execution, Failed
from orchestrator.pex.policy import BasePolicy
from orchestrator.types import JsonObject, is_list

QUESTION = "question"
LEAST_ABOUT = 0.34
"""Minimum share of the question's words that the quoted passage must contain, from 0 to 1."""


class AnswerFromDocuments(BasePolicy):
    """A policy for flows with a slot `question` and a tool that calls `Documents.search`.

    Public API for domains. The template receives `answer`, which is empty if no document is relevant, and
    `sources` with title, section and text. A skill returns `answer` and the `sources` that it used.
    """

    async def invoke(self, run: Execution) -> Ending | None:
        """Search for passages, then quote a passage or run the skill.

        Return None if there is an answer, which is empty if no passage is relevant.
        """
        ending = await call_in_order(run, self)
        if ending is not None:
            return ending
        question, about = str(run.value(QUESTION)), _find_passages(run)[:1]
        about = [one for one in about if share_of(question, " ".join(one.values())) >= LEAST_ABOUT]
        answer = quote(question, about[0]["title"], about[0]["section"], about[0]["text"]) if about else ""
        if about and self.skills is not None and self.skills.can_run(run.flow.dact):
            ending = await super().invoke(run)
            if isinstance(ending, Failed):
                about, answer = ([], "") if ending.uncertain else (about, answer)
            elif ending is not None:
                return ending
            else:
                named, answer = run.data["sources"], run.data["answer"]
                about = [one for one in _find_passages(run) if one["source"] in named]
        run.data = {QUESTION: question, "answer": answer, "sources": about}
        return None

    def knowledge(self, run: Execution) -> JsonObject:
        return {"passages": _find_passages(run)}

    def find_fault(self, run: Execution, data: JsonObject) -> str | None:
        """Return why the cited passages do not support the answer, or None."""
        named = data.get("sources")
        used = [one for one in _find_passages(run) if is_list(named) and one["source"] in named]
        if not used:
            return "list the sources of the passages that you used in `sources`"
        grounds = [value for one in used for value in one.values()]
        unfounded = find_unfounded_numbers(data["answer"], str(run.value(QUESTION)), *grounds)
        if unfounded:
            return f"{', '.join(unfounded)} does not appear in the passages that you cited"
        return None

    def find_fault_in_text(self, run: Execution, text: str) -> str | None:
        """Return a sentence about numbers in the text that no passage contains, or None."""
        grounds = [value for one in _find_passages(run) for value in one.values()]
        unfounded = find_unfounded_numbers(text, str(run.value(QUESTION)), *grounds)
        return f"{', '.join(unfounded)} does not appear in any passage" if unfounded else None


def _find_passages(run: Execution) -> list[dict[str, str]]:
    """Return the distinct passages found by the searches of this execution."""
    found = (one for returned in run.returned for one in returned.get("passages", ()))
    return list({one["source"]: one for one in found}.values())
