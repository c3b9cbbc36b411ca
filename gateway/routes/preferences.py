"""Read and replace user preferences (CO-4)."""

from fastapi import APIRouter

from gateway.dependencies import TheMemory, TheTenant
from gateway.request_bodies import PreferencesBody
from gateway.responses.memory import Preferences
from orchestrator.ports.memory.preferences import Preference
from orchestrator.turns.submission import Identifier
from orchestrator.types import JsonObject, UserId

router = APIRouter(prefix="/v1/users/{user_id}/preferences", tags=["memory"])


@router.get("", response_model=Preferences)
async def show_preferences(user_id: Identifier, memory: TheMemory, tenant: TheTenant) -> JsonObject:
    """Return a user's preferences, with their sources."""
    return {"user_id": user_id, "preferences": await memory.preferences.of_user(tenant, UserId(user_id))}


@router.put("", response_model=Preferences)
async def replace_preferences(
    user_id: Identifier, body: PreferencesBody, memory: TheMemory, tenant: TheTenant
) -> JsonObject:
    """Replace a user's preferences. An empty list deletes all preferences."""
    given = tuple(
        Preference(
            key=one.key,
            kind=one.kind,
            source=one.source,
            value=one.value,
            text=one.text,
            labels=tuple(sorted({label.value for label in one.labels})),
            origin=one.origin or {"given": "over HTTP"},
        )
        for one in body.preferences
    )
    await memory.preferences.replace(tenant, UserId(user_id), given)
    return await show_preferences(user_id, memory, tenant)
