"""Replay a recorded turn with its state, clock and journal, without side effects.

Recorded calls return the recorded answers, and the sandbox doesn't run other calls. With `asks`, it calls models
instead of using their recorded answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from lab.replay.recordings import RecordedSession, RecordedTurn
from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.postgres.memory.documents import PostgresDocuments
from orchestrator.adapters.postgres.memory.preferences import PostgresPreferences
from orchestrator.adapters.postgres.memory.scratchpad import PostgresScratchpadArchive
from orchestrator.adapters.postgres.pool import Database
from orchestrator.agent.agent import Agent
from orchestrator.agent.build import build_agent
from orchestrator.agent.modules import AgentPorts, MemoryPorts, Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.steps.record import make_result
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.user_memory import owner_of
from orchestrator.nlu.system1 import System1
from orchestrator.ports.memory.context import ContextQuestion, Finding, Findings
from orchestrator.ports.memory.documents import PASSAGES, Embedder, Owned, Passage
from orchestrator.ports.memory.preferences import Preference
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.runtime.journal import TOOL, Journal
from orchestrator.telemetry import SignalType
from orchestrator.telemetry.signals import describe_all
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.step import NotBegun, Step, UnknownOutcome
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import Epoch, FlowId, Json, SessionId, TenantId, TurnId, UserId, hash_json
from parley.testing.lane import MemoryLane
from parley.testing.memory import MemoryScratchpad
from parley.testing.store import MemoryStore

_NEW = ":new"
"""Key suffix for calls without a recording."""


class RecordedJournal(Journal):
    """A journal that answers calls from recordings. `missed`: keys and requests of calls without a recording.

    `unused`: recorded steps that calls have not used.
    """

    def __init__(self, lane: RecordedLane, lease: Lease, *, asks: bool) -> None:
        super().__init__(lane, lease, lease.work)
        self._asks = asks
        self.unused = {step.key: step for step in lease.work.steps}
        self.missed: list[tuple[str, Json]] = []

    async def call(
        self,
        key: str,
        kind: str,
        request: Json,
        run: Callable[[str], Awaitable[Json]],
        *,
        idempotent: bool,
        effect: Effect | None = None,
    ) -> Json | UnknownOutcome | NotBegun:
        """Return the recorded answer of a call. If the sandbox calls models, run model calls instead.

        If there is no recording, a tool call returns NotBegun, and a model call raises ModelUnavailable.
        """
        if self._asks and kind != TOOL:
            self.unused = {name: step for name, step in self.unused.items() if step.kind == TOOL}
            return await run(key)
        known = self._find(key, kind, hash_json(request))
        if known is None:
            self.missed.append((key, request))
        self.stopped = known is None
        try:
            return await super().call(
                known.key if known else key + _NEW, kind, request, run, idempotent=idempotent, effect=effect
            )
        finally:
            self.stopped = False

    def _find(self, key: str, kind: str, digest: str) -> Step | None:
        """Return and consume the step with this key and request, or else one with the same request; otherwise, None."""
        fitting = [step for step in self.unused.values() if (step.kind, step.request_hash) == (kind, digest)]
        known = next((step for step in fitting if step.key == key), fitting[0] if fitting else None)
        return None if known is None else self.unused.pop(known.key)


class RecordedLane(MemoryLane):
    """A read-only lane whose lookups return data from before the replayed turn."""

    def __init__(self, moment: Moment) -> None:
        super().__init__(MemoryStore())
        self._moment = moment

    async def find_effect(self, lease: Lease, effect: Effect) -> LedgerEntry | None:
        session, turn = self._moment.session, self._moment.turn
        later = {one.turn_id for one in session.turns if one.epoch >= turn.epoch}
        known = [one for one in session.ledger if one.fingerprint == effect.fingerprint]
        return next((one for one in known[::-1] if one.turn_id not in later), None)

    async def adopt_effect(
        self, lease: Lease, turn_id: TurnId, step_key: str, *, fingerprint: str, flow_id: FlowId
    ) -> LedgerEntry | None:
        own = (
            one for one in self._moment.session.ledger if (one.turn_id, one.step_key) == (turn_id, step_key)
        )
        entry = next(own, None)
        undone = entry is not None and entry.status is LedgerStatus.COMPENSATED
        return replace(entry, status=LedgerStatus.DONE) if entry is not None and undone else entry

    async def mark_compensated(self, lease: Lease, fingerprint: str) -> None:
        """Do nothing: the recorded ledger already has the compensation."""

    async def decide_approval(
        self, lease: Lease, approval_id: str, decision: Decision
    ) -> ApprovalRecord | None:
        """Return the approval with the recorded decision or, if it was pending, with `decision` if that is permitted.

        Return None if there is no such approval.
        """
        record = self._moment.session.approvals.get(approval_id)
        if record is None:
            return None
        if record.decided_at is not None and record.decided_at <= self._moment.turn.ended:
            denied = record.status is ApprovalStatus.DENIED
            return replace(record, status=ApprovalStatus.DENIED if denied else ApprovalStatus.GRANTED)
        record = replace(record, status=ApprovalStatus.PENDING)
        suffices = decision.suffices(operator_only=record.operator_only)
        return replace(record, status=decision.status) if suffices else record


@dataclass(slots=True)
class Moment:
    """The turn that is being replayed.

    `now`: the turn's recorded start, in Unix seconds. `remembers`: True if the turn read data outside its session,
    which may have changed since.
    """

    session: RecordedSession = field(init=False)
    turn: RecordedTurn = field(init=False)
    now: float = 0.0
    remembers: bool = False


class RecordedPreferences(PostgresPreferences):
    """The preference store, limited to preferences that have not changed since the replayed turn started."""

    def __init__(self, database: Database, moment: Moment) -> None:
        super().__init__(database)
        self._moment = moment
        self._read: dict[tuple[TenantId, UserId], list[Preference]] = {}

    async def look_up(self, sessions: Iterable[RecordedSession]) -> None:
        whose = ((one.tenant_id, owner_of(one.user_id, one.root or one.session_id)) for one in sessions)
        self._read = await self.of_users([*dict.fromkeys(whose)])

    async def of_user(self, tenant_id: TenantId, user_id: UserId) -> list[Preference]:
        found = self._read[tenant_id, user_id]
        self._moment.remembers |= bool(found)
        return [one for one in found if one.updated_at <= self._moment.now]


class RecordedDocuments(BusinessContext):
    """The business context, limited to documents that have not changed since the replayed turn started."""

    def __init__(self, database: Database, embedder: Embedder, moment: Moment) -> None:
        self._store = PostgresDocuments(database)
        super().__init__(self._store, embedder)
        self._moment = moment
        self._some: dict[TenantId, bool] = {}

    async def search(self, owned: Owned, question: str, *, limit: int = PASSAGES) -> list[Passage]:
        if owned.tenant_id not in self._some:
            self._some[owned.tenant_id] = await self._store.has_some(owned.tenant_id)
        if not self._some[owned.tenant_id] or not await self.documents.list(owned, limit=1):
            return []
        self._moment.remembers = True
        found = await super().search(owned, question, limit=limit)
        return [one for one in found if one.updated_at <= self._moment.now]


class RecordedNotes(MemoryScratchpad):
    """A scratchpad with the archived entries that existed when the replayed turn started."""

    def __init__(self, database: Database, moment: Moment) -> None:
        super().__init__()
        self._archive = PostgresScratchpadArchive(database)
        self._moment = moment
        self._read: dict[SessionId, list[Entry]] = {}

    async def look_up(self, sessions: Iterable[RecordedSession]) -> None:
        self._read = await self._archive.load_all([one.session_id for one in sessions])

    async def read(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        kinds: frozenset[EntryKind] = frozenset(),
        touch: bool = True,
    ) -> list[Entry]:
        del tenant_id, touch
        now, known = self._moment.now, self._read.get(session_id, ())
        found = [one for one in known if one.at <= now and (not kinds or one.kind in kinds)]
        self._moment.remembers |= bool(found)
        return found


class RecordedGathering:
    """Context gathering that returns the findings of recorded runs and starts no runs."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment

    async def begin(self, question: ContextQuestion) -> str:
        runs = self._moment.session.runs
        return next((name for name, run in runs.items() if run.turn_id == question.turn_id), "")

    async def wait(self, tenant_id: TenantId, run_id: str, timeout_s: float) -> Findings | None:
        run = self._moment.session.runs.get(run_id)
        if run is None or run.ended is None or run.ended > self._moment.turn.ended:
            return None
        return Findings(tuple(Finding.from_json(body) for body in run.found or ()))


@dataclass(slots=True)
class Replayed:
    """The outcome of a replayed turn.

    `missed`: keys and requests of calls without a recording. `unused`: recorded steps that the turn did not use.
    `remembers`: see `Moment`.
    """

    commit: TurnCommit
    missed: list[tuple[str, Json]]
    unused: list[Step]
    remembers: bool


class Sandbox:
    """A domain's Agent for replays, one turn at a time.

    `models`: models for sessions that used models. `asks`: True to call the models instead of using recorded answers.
    """

    def __init__(
        self,
        loaded: LoadedDomain,
        system1: System1,
        database: Database,
        embedder: Embedder,
        models: ModelPool,
        *,
        asks: bool = False,
    ) -> None:
        moment = self._moment = Moment()
        self._loaded = loaded
        self._system1 = system1
        self._models = models
        self._asks = asks
        self._lane = RecordedLane(moment)
        self._preferences = RecordedPreferences(database, moment)
        self._notes = RecordedNotes(database, moment)
        memory = MemoryPorts(self._preferences, RecordedDocuments(database, embedder, moment), self._notes)
        self._ports = AgentPorts(gather=RecordedGathering(moment), memory=memory, clock=lambda: moment.now)
        self._agents: dict[bool, Agent] = {}

    async def look_up(self, sessions: Collection[RecordedSession]) -> None:
        """Load the data that the sessions' turns may look up. Must be called before `replay`.

        Raises Unavailable if the database doesn't respond.
        """
        await self._preferences.look_up(sessions)
        await self._notes.look_up(sessions)

    async def replay(self, session: RecordedSession, turn: RecordedTurn, *, by_model: bool) -> Replayed:
        """Replay a turn. `by_model`: True if the session used a model.

        Raises Unavailable if the database doesn't respond.
        """
        self._moment.now, self._moment.remembers = turn.began, False
        self._moment.session, self._moment.turn = session, turn
        agent = self._find_agent(by_model=by_model or self._asks)
        known = {"waited_s": turn.waited_s, "accepted_at": turn.began - turn.waited_s, "steps": turn.steps}
        work = Work(turn.turn_id, turn.seq, turn.input, 1, agent.deadline_s, **known)
        whose = (session.session_id, session.tenant_id, session.user_id, session.domain)
        lease = Lease(*whose, 0, Epoch(turn.epoch - 1), turn.state, work, session.root)
        journal = RecordedJournal(self._lane, lease, asks=self._asks)
        commit = await agent.run_turn(lease, work, journal, _keep_result)
        return Replayed(commit, journal.missed, list(journal.unused.values()), self._moment.remembers)

    def _find_agent(self, *, by_model: bool) -> Agent:
        if by_model not in self._agents:
            domain = self._loaded.domain
            self._agents[by_model] = build_agent(
                domain,
                self._loaded.policies,
                _no_services,
                engineer=self._models.engineer(domain.config) if by_model else None,
                system1=self._system1,
                ports=self._ports,
            )
        return self._agents[by_model]


def _keep_result(turn: RunningTurn, modules: Modules) -> TurnCommit:
    """Return a commit with only the result and the predictions, for comparison."""
    del modules
    answer, context = turn.answer, turn.context
    assert answer is not None
    result = make_result(turn, answer, answer.message, {})
    read = [one for one in context.log.signals if one.type is SignalType.PREDICTION]
    return TurnCommit(TurnStatus.DONE, b"", b"", snapshot=False, result=result, signals=describe_all(read))


def _no_services(tenant_id: TenantId) -> dict[str, Any]:
    del tenant_id
    return {}
