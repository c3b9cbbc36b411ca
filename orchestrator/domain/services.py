"""Base classes for a domain's `services.py`. Public API for domains.

The manifest maps tools to methods. The tool runner calls the methods, with schema checks, timeouts and retries.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from orchestrator.types import Json, JsonObject, SessionId, TenantId, UserId


class Records(Protocol):
    """Named collections of JSON documents that store a service's data.

    Each tenant and domain has separate collections.
    """

    async def get(self, collection: str, key: str) -> JsonObject | None: ...

    async def create(self, collection: str, key: str, document: JsonObject) -> JsonObject:
        """Insert a document unless the key exists. Return the stored document, which may be older."""
        ...

    async def update(
        self, collection: str, key: str, changes: JsonObject, *, where: JsonObject | None = None
    ) -> JsonObject | None:
        """Merge top-level `changes` if the document exists and its fields equal `where`.

        Return the stored document, or None if no document matched.
        """
        ...

    async def find(
        self, collection: str, where: JsonObject | None = None, *, limit: int = 100
    ) -> list[JsonObject]:
        """Return up to `limit` documents whose top-level fields equal `where`, ordered by key."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The context of one call.

    Attributes:
        idempotency_key: the call's key, the same for every attempt. A tool with side effects stores the key,
            so that a retry finds the earlier result.
        now: the time, in Unix seconds.
        root: the root of the session's fork tree, if the session is a fork.
        repeated: True if an earlier call with this key may have arrived, and may still be running.
        reference: the call's ID, for a tool with `later` in the manifest. The same for every attempt.
        callback_url: the signed URL that receives the result of such a call. The same for every attempt.
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
        """Return the session that owns data if there is no user: the root of the fork tree, or this session."""
        return self.root or self.session_id


@dataclass(frozen=True, slots=True)
class Accepted:
    """The return value of a tool with `later` in the manifest if its result comes later (RT-32).

    `message`: the message to the user in the meantime. Default: a message that the call is in progress.
    """

    message: str = ""


@runtime_checkable
class Paged(Protocol):
    """A service whose results have a `table_id`, so that users can page through the table."""

    async def page(self, table_id: str, number: int, call: ToolCall) -> JsonObject:
        """Return page `number` (from 1): ``{rows, page, pages, row_count}``, with rows as objects.

        Raises ToolFailure (not_found) if the table or page doesn't exist or belongs to another owner.
        """
        ...


@runtime_checkable
class Exporting(Protocol):
    """A service that stores exports, which users can download."""

    async def document(self, document_id: str, call: ToolCall) -> JsonObject:
        """Return an export: ``{name, format, text, key}``. The secret `key` signs its `ExportLink`.

        Raises ToolFailure (not_found) if the export doesn't exist or belongs to another owner.
        """
        ...


class PythonRunner(Protocol):
    """The only way for a service to run model-written Python (PX-10)."""

    async def run(self, code: str, arguments: JsonObject) -> Json:
        """Check the only function in `code`, and call it with keyword arguments in a separate process.

        Raises ToolFailure with the reason if the function is rejected or stopped.
        """
        ...


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a query can read. `columns`: names and DuckDB types. `rows`: Python values."""

    columns: Sequence[tuple[str, str]]
    rows: Iterable[Sequence[object]]


@dataclass(frozen=True, slots=True)
class QueryRows:
    """A query's result. `is_cut`: True if there are more rows. `code`: the query that ran."""

    columns: tuple[tuple[str, str], ...]
    rows: list[list[Json]]
    is_cut: bool
    code: str = ""


class SqlRunner(Protocol):
    """The only way for a service to run model-written SQL (PX-10)."""

    async def run(self, code: str, tables: Mapping[str, Table]) -> QueryRows:
        """Check the only query in `code`, and run it on copies of the tables in a separate process.

        Raises ToolFailure if the query is rejected or stopped, with a reason that helps to fix the query.
        """
        ...


class UserMemory(Protocol):
    """Memories of a call's user, or of its session if the call has no user."""

    async def remember(self, call: ToolCall, text: str) -> JsonObject:
        """Store a sentence about the user.

        Return ``{remembered, lasting}``. `lasting`: True if the memory outlives this session.
        """
        ...

    async def recall(self, call: ToolCall, about: str = "") -> list[JsonObject]:
        """Return the memories that match `about`, with `text`, `why`, `kind` and `from`. Default: all memories."""
        ...

    async def forget(self, call: ToolCall, about: str = "", *, everything: bool = False) -> list[str]:
        """Forget the memories that match `about`, or all memories if `everything` is True.

        Default: forget the user's last statement. Return the forgotten texts.
        """
        ...


class DocumentSearch(Protocol):
    """A search over the documents that a call's user can see."""

    async def search(self, call: ToolCall, question: str) -> JsonObject:
        """Return `passages`, best first, with `source`, `title`, `section` and `text`, and their `labels`.

        Raises Unavailable if the documents cannot be searched.
        """
        ...


class SessionEvents(Protocol):
    """Scheduled events for a call's session. Each event starts the flow that lists it under `events`.

    The flow starts in a system turn. If the turn that schedules an event is canceled later, the event remains.
    """

    async def schedule(
        self, call: ToolCall, name: str, payload: JsonObject, *, at: float, key: str
    ) -> JsonObject:
        """Schedule an event at a Unix time, replacing any earlier event that has the same key. Return the event.

        `payload`: slot values. Raises ToolFailure if the event does not start one of the domain's flows.
        """
        ...

    async def cancel(self, call: ToolCall, key: str) -> bool:
        """Cancel a scheduled event. Return False if it does not exist or has already started its flow."""
        ...

    async def scheduled(self, call: ToolCall) -> list[JsonObject]:
        """Return the scheduled events, next event first, with `name`, `payload`, `key` and `not_before`."""
        ...


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """A service's dependencies. `config`: the service's entry under `services` in domain.yaml."""

    records: Records
    config: JsonObject = field(default_factory=JsonObject)
    python: PythonRunner | None = None
    memory: UserMemory | None = None
    sql: SqlRunner | None = None
    documents: DocumentSearch | None = None
    events: SessionEvents | None = None


class Service:
    """The base class of services, whose methods are tools.

    A method receives the tool's inputs as keyword arguments, and the `ToolCall` if it has a parameter `call`.
    The method returns the output object or raises ToolFailure. Synchronous methods run in a thread.
    """

    def __init__(self, context: ServiceContext) -> None:
        self.records = context.records
        self.config = context.config
        self.python = context.python
        self.memory = context.memory
        self.sql = context.sql
        self.documents = context.documents
        self.events = context.events
