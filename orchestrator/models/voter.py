"""One model among those that vote: the Prompt Engineer, bound to it (NL-3)."""

from collections.abc import Mapping

from orchestrator.models.calling import CallContext
from orchestrator.models.config import ModelChoice
from orchestrator.models.engineer import PromptEngineer
from orchestrator.types import Json, JsonObject


class Voter:
    """Asks one model and no other."""

    def __init__(self, engineer: PromptEngineer, choice: ModelChoice) -> None:
        self._engineer = engineer
        self._choice = choice

    @property
    def available(self) -> bool:
        """Whether this model can be asked now."""
        return self._engineer.can_ask(self._choice)

    async def structured(
        self, prompt_id: str, variables: Mapping[str, Json], schema: JsonObject, call: CallContext
    ) -> JsonObject:
        """See `PromptEngineer.structured`."""
        return await self._engineer.structured(prompt_id, variables, schema, call, voter=self._choice)
