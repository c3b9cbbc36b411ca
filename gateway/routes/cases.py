from fastapi import APIRouter

from gateway.dependencies import TheFeedback, TheSessions, TheTenant, TheTurns, TurnServices
from gateway.routes.read_models import timed_turn
from gateway.schemas import ResponseModel, documented
from orchestrator.adapters.domains.yaml_source import write_items
from orchestrator.errors import Refused
from orchestrator.redaction import hide_secrets
from orchestrator.turns.cases import make_case, outcome_of
from orchestrator.turns.turn import TurnRecord
from orchestrator.types import JsonObject, TenantId, TurnId

_AT_ONCE = 1000

router = APIRouter(prefix="/v1", tags=["operate"])


class TestCase(ResponseModel):
    """A test case for `parley eval`, as a file for a domain's `evaluations/` folder."""

    turn_id: str
    domain: str
    name: str
    yaml: str


@router.get("/turns/{turn_id}/case", responses=documented(TestCase))
async def make_test_case(
    turn_id: TurnId, turns: TheTurns, sessions: TheSessions, feedback: TheFeedback, tenant: TheTenant
) -> JsonObject:
    """Return a test case for `parley eval` with the session up to the turn. For operators only.

    The turn's expectations come from feedback, and are empty without feedback. Recognized secrets are
    redacted.
    """
    record = await turns.inbox.turn(tenant, turn_id)
    session = await sessions.store.get(tenant, record.session_id)
    taken = [timed_turn(one) for one in await _read_until(turns, tenant, record)]
    given = [
        one for one in await feedback.list(tenant, session_id=record.session_id) if one.turn_id == turn_id
    ]
    rated: JsonObject | None = None
    if given:
        latest = given[0].feedback
        rated = {
            "rating": latest.rating,
            "comment": latest.comment,
            "correction": latest.correction,
            "author": latest.author,
        }
    case = (make_case(taken, turn_id, rated) if rated else None) or make_case(taken, turn_id)
    if case is None:
        raise Refused(f"Turn {turn_id} has no user message or action.")
    told = "".join(f"#   {line}\n" for line in write_items([outcome_of(taken[-1])]).splitlines())
    head = f"# For evaluations/ of the domain {session.domain}. The turn's result:\n{told}"
    return {
        "turn_id": turn_id,
        "domain": session.domain,
        "name": f"case_{turn_id}.yaml",
        "yaml": hide_secrets(f"{head}conversations:\n{write_items([case])}"),
    }


async def _read_until(turns: TurnServices, tenant: TenantId, last: TurnRecord) -> list[TurnRecord]:
    found: list[TurnRecord] = [last]
    while page := await turns.inbox.turns(
        tenant, session_id=last.session_id, before=found[0].seq, limit=_AT_ONCE
    ):
        found = [*reversed(page), *found]
    return found
