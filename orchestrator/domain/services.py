"""Base classes of a domain's `services.py`: services, their calls and their failures.

Public API for domains. The manifest maps tools to methods; PEX runs them, with schemas, timeouts and
retries.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from orchestrator.types import Json, JsonObject, SessionId, TenantId, UserId


class Records(Protocol):
    """Named collections of JSON documents: where a service stores its data.

    Bound to one tenant and domain; `collection` and `key` are text.
    """

    async def get(self, collection: str, key: str) -> JsonObject | None: ...

    async def create(self, collection: str, key: str, document: JsonObject) -> JsonObject:
        """Insert unless the key exists; return the stored document, which may be an earlier one."""
        ...

    async def update(
        self, collection: str, key: str, changes: JsonObject, *, where: JsonObject | None = None
    ) -> JsonObject | None:
        """Merge top-level `changes` if the document exists and its fields equal `where`.

        Returns the stored document, or None if nothing matched.
        """
        ...

    async def find(
        self, collection: str, where: JsonObject | None = None, *, limit: int = 100
    ) -> list[JsonObject]:
        """Return documents whose top-level fields equal `where`, ordered by key."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The context of one call. `now`: Unix seconds.

    `idempotency_key`: the same for every attempt; a tool with side effects stores it, so that a retry finds
    the earlier result. `root`: for a fork, the root of its fork tree. `repeated`: an earlier call with this
    key may have arrived and may still be running.

    For a tool with `later` in the manifest: `reference` names the call, and `callback_url` is the signed URL that takes
    its result. Both are the same for every attempt.
    """

    idempotency_key: str
    session_id: SessionId
    user_id: UserId | None
    tenant_id: TenantId
    now: float
    root: SessionId | None = None
    repeated: bool = False
    reference: str = ""
    callback_url: str = ""

    @property
    def home(self) -> SessionId:
        """Return the session that owns data without a user: the same one for all forks of a tree."""
        return self.root or self.session_id


@dataclass(frozen=True, slots=True)
class Accepted:
    """The return value of a tool with `later` in the manifest if its result comes later (RT-32).

    `message`: what the user is told meanwhile. Default: that it is under way.
    """

    message: str = ""


@runtime_checkable
class Paged(Protocol):
    """A service whose results have a `table_id`: people can page through that table."""

    async def page(self, table_id: str, number: int, call: ToolCall) -> JsonObject:
        """Return page `number` (from 1): ``{rows, page, pages, row_count}``, rows as objects.

        Raises ToolFailure: not_found if the table or page doesn't exist or belongs to another owner.
        """
        ...


@runtime_checkable
class Exporting(Protocol):
    """A service that stores exports: people can download them."""

    async def document(self, document_id: str, call: ToolCall) -> JsonObject:
        """Return an export: ``{name, format, text, key}``; `key` is the secret that signs its `ExportLink`.

        Raises ToolFailure: not_found if it doesn't exist or belongs to another owner.
        """
        ...


class PythonRunner(Protocol):
    """The only way for a service to run model-written Python (PX-10)."""

    async def run(self, code: str, arguments: JsonObject) -> Json:
        """Check the only function in `code`, and call it with keyword arguments in a separate process.

        Raises ToolFailure with the reason if it is rejected or stopped.
        """
        ...


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a query can read. `columns`: name and DuckDB type. `rows`: Python values."""

    columns: Sequence[tuple[str, str]]
    rows: Iterable[Sequence[object]]


@dataclass(frozen=True, slots=True)
class QueryRows:
    """A query's result. `code`: the query that ran. `is_cut`: there are more rows."""

    columns: tuple[tuple[str, str], ...]
    rows: list[list[Json]]
    is_cut: bool
    code: str = ""


class SqlRunner(Protocol):
    """The only way for a service to run model-written SQL (PX-10)."""

    async def run(self, code: str, tables: Mapping[str, Table]) -> QueryRows:
        """Check the only query in `code`, and run it on copies of the tables in a separate process.

        Raises ToolFailure with the reason if it is rejected or stopped, in a sentence that helps to fix it.
        """
        ...


class UserMemory(Protocol):
    """Memories of a call's user; in a session without a user, of that session."""

    async def remember(self, call: ToolCall, text: str) -> JsonObject:
        """Store a sentence about the user; return `remembered`, and `lasting` if it outlives this session."""
        ...

    async def recall(self, call: ToolCall, about: str = "") -> list[JsonObject]:
        """Return memories with `text`, `why` and `kind`; all of them without words."""
        ...

    async def forget(self, call: ToolCall, about: str = "", *, everything: bool = False) -> list[str]:
        """Forget what the words are about, everything, or by default the last statement; return the forgotten texts."""
        ...


class DocumentSearch(Protocol):
    """Searches the documents that a call's user can see."""

    async def search(self, call: ToolCall, question: str) -> JsonObject:
        """Return `passages`, best first, with `source`, `title`, `section` and `text`, and their `labels`.

        Raises Unavailable.
        """
        ...


class SessionEvents(Protocol):
    """Events for the session of a call: each starts the flow that lists it under `events`, as a turn of the system.

    Like other state of a service, an event outlives a turn that is canceled later.
    """

    async def schedule(
        self, call: ToolCall, name: str, payload: JsonObject, *, at: float, key: str
    ) -> JsonObject:
        """Schedule an event at a time in unix seconds, or replace the one with this key. `payload` fills slots.

        Raises ToolFailure for an event that starts no flow of the domain.
        """
        ...

    async def cancel(self, call: ToolCall, key: str) -> bool:
        """Cancel an event; return whether it was still to come."""
        ...

    async def scheduled(self, call: ToolCall) -> list[JsonObject]:
        """Return the events to come, the next one first, with `name`, `payload`, `key` and `not_before`."""
        ...


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """A service's dependencies. `config`: its part of `services` in domain.yaml."""

    records: Records
    config: JsonObject = field(default_factory=JsonObject)
    python: PythonRunner | None = None
    memory: UserMemory | None = None
    sql: SqlRunner | None = None
    documents: DocumentSearch | None = None
    events: SessionEvents | None = None


class Service:
    """An external system; its methods are tools.

    A method receives the tool's inputs as keyword arguments, and a `ToolCall` as `call` if its signature has
    one. It is asynchronous, or synchronous and run in a thread; it returns the output object, or raises
    ToolFailure.
    """

    def __init__(self, context: ServiceContext) -> None:
        self.records = context.records
        self.config = context.config
        self.python = context.python
        self.memory = context.memory
        self.sql = context.sql
        self.documents = context.documents
        self.events = context.events
