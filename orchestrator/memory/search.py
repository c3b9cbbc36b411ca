"""Search preferences and documents for context that a blocked flow needs (PX-16)."""

from orchestrator.ports.memory.context import ContextQuestion, Finding
from orchestrator.ports.memory.documents import ContextSearch, Owned
from orchestrator.ports.memory.preferences import Preference, PreferenceKind, PreferenceStore
from orchestrator.types import TenantId, UserId

ANY_FLOW = "*"


class RememberedContext:
    def __init__(self, preferences: PreferenceStore, documents: ContextSearch) -> None:
        self._preferences = preferences
        self._documents = documents

    async def search(
        self, tenant_id: TenantId, user_id: UserId | None, question: ContextQuestion, *, limit: int
    ) -> list[Finding]:
        """Return the user's usual values for the requested slots, then passages, up to `limit` in total."""
        known = [] if user_id is None else await self._preferences.of_user(tenant_id, user_id)
        habits = [found for one in known if (found := _read(one, question)) is not None]
        owned = Owned(tenant_id, user_id, question.domain)
        passages = await self._documents.search(owned, question.question, limit=limit)
        passages_found = [
            Finding("memory", f"{one.title}: {one.text}".removeprefix(": "), {}, one.score, one.labels)
            for one in passages
        ]
        return [*sorted(habits, key=lambda finding: -finding.score), *passages_found][:limit]


def _read(preference: Preference, question: ContextQuestion) -> Finding | None:
    """Convert a preference to a finding, or return None if it is not a rule for a requested slot of the task.

    Rules for the question's task score higher than rules for all tasks.
    """
    dact, _, slot = preference.key.rpartition(".")
    if preference.kind is not PreferenceKind.RULE or slot not in question.slots:
        return None
    if dact not in {question.dact, ANY_FLOW}:
        return None
    text = preference.text or f"The user usually gives {preference.value} for {slot.replace('_', ' ')}."
    score = 2.0 if dact == question.dact else 1.0
    return Finding("memory", text, {slot: preference.value}, score, preference.labels)
