"""API methods for operators, and the base class for all API methods."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from parley_client.calls import Call, path_of
from parley_client.types import JsonObject, new_id

One = TypeVar("One")  # an object, or an awaitable object
Many = TypeVar("Many")  # a list of objects, or an awaitable list


class OperatorMethods(ABC, Generic[One, Many]):
    """Methods for operators. They raise Forbidden unless the caller has the scope `operator`."""

    @abstractmethod
    def _send(self, call: Call) -> Any: ...

    def _get(self, *path: str, **query: object) -> Any:
        return self._send(Call("GET", path_of(*path), query=query))

    def _post(self, *path: str, keyed: bool = False, **body: object) -> Any:
        return self._send(Call("POST", path_of(*path), body or None, keyed=keyed))

    def search_turns(
        self,
        q: str | None = None,
        *,
        failed: bool | None = None,
        not_understood: bool | None = None,
        rated_down: bool | None = None,
        over_budget: bool | None = None,
        min_ms: float | None = None,
        min_cost_micros: int | None = None,
        domain: str | None = None,
        user_id: str | None = None,
        days: int = 7,
        before: str | None = None,
        limit: int = 50,
    ) -> One:
        """Search the turns of all sessions, newest first. Return ``{turns, next}``.

        `q`: words that must all occur in the message or the reply. `days`: how many days back to search.
        `before`: the previous page's `next`.
        """
        marks = {"failed": failed, "not_understood": not_understood}
        marks |= {"rated_down": rated_down, "over_budget": over_budget}
        least = {"min_ms": min_ms, "min_cost_micros": min_cost_micros}
        where = {"domain": domain, "user_id": user_id, "days": days, "before": before, "limit": limit}
        return self._get("turns", "search", q=q, **marks, **least, **where)

    def turns_by_day(self, days: int = 14) -> Many:
        """Return turn counts, median run times and costs per UTC day, oldest day first."""
        return self._get("turns", "days", days=days)

    def turns_by_user(self, days: int = 7, limit: int = 20) -> Many:
        """Return turn counts and costs per user, most expensive user first."""
        return self._get("turns", "users", days=days, limit=limit)

    def turn_journal(self, turn_id: str) -> One:
        """Return a turn's `steps` (model and tool calls) and `signals` (predictions, checks, …)."""
        return self._get("turns", turn_id, "journal")

    def turn_case(self, turn_id: str) -> One:
        """Return a test case for `parley eval`: the session up to the turn, with expectations from its feedback."""
        return self._get("turns", turn_id, "case")

    def repairs(self, session_id: str) -> One:
        """Return a session's problems, unfinished work and applicable repairs."""
        return self._get("sessions", session_id, "repairs")

    def preview_repairs(self, session_id: str, repairs: list[JsonObject]) -> One:
        """Return what the repairs would change and tell the user, and any reasons for rejecting them."""
        return self._post("sessions", session_id, "repairs", "preview", repairs=repairs)

    def repair(
        self, session_id: str, repairs: list[JsonObject], *, epoch: int, why: str, wait_s: float = 30.0
    ) -> One:
        """Apply repairs as a turn of the session.

        `epoch`: the session's epoch when the operator inspected the session. `why`: the reason, stored with the
        repairs. Raises Refused if the session has changed since then, or the repairs would break its state.
        """
        body = {"repairs": repairs, "epoch": epoch, "why": why, "idempotency_key": new_id("client")}
        path = path_of("sessions", session_id, "repairs")
        return self._send(Call("POST", path, body, {"wait": wait_s}, keyed=True))
