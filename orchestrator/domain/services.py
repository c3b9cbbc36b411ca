"""What a domain's `services.py` builds on: services, the call they answer, and how they fail.

Public to domains. Which tool calls which method is said in the manifest; running it, with
schemas, time-outs and retries, is the business of PEX.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from orchestrator.types import Json, JsonObject, SessionId, TenantId, UserId


class Records(Protocol):
    """Named collections of JSON documents: where a service keeps what it owns.

    Bound to one tenant and domain; `collection` and `key` are text.
    """

    async def get(self, collection: str, key: str) -> JsonObject | None: ...

    async def create(self, collection: str, key: str, document: JsonObject) -> JsonObject:
        """Insert unless the key exists; returns what is stored (the earlier document if there was one)."""
        ...

    async def update(
        self, collection: str, key: str, changes: JsonObject, *, where: JsonObject | None = None
    ) -> JsonObject | None:
        """Merge top-level `changes` if the document exists and its fields equal `where`; returns the
        stored document, or None when nothing matched.
        """
        ...

    async def find(
        self, collection: str, where: JsonObject | None = None, *, limit: int = 100
    ) -> list[JsonObject]:
        """Documents whose top-level fields equal `where`, ordered by key."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The circumstances of one call. `now`: unix seconds.

    `idempotency_key` is the same for every attempt of the same call: a tool that changes
    something stores it, so that a repeated attempt finds what the first one did. `root`: of a branch, where its
    family begins.
    """

    idempotency_key: str
    session_id: SessionId
    user_id: UserId | None
    tenant_id: TenantId
    now: float
    root: SessionId | None = None

    @property
    def home(self) -> SessionId:
        """The session to keep things under that belong to no user: the same one for all branches of a family."""
        return self.root or self.session_id


@runtime_checkable
class Paged(Protocol):
    """A service whose answers give a `table_id`: people may turn the pages of that table."""

    async def page(self, table_id: str, number: int, call: ToolCall) -> JsonObject:
        """Page `number` (from 1): ``{rows, page, pages, row_count}``, rows as objects.

        Raises ToolFailure: not_found when there is no such table or page, or it is another owner's.
        """
        ...


@runtime_checkable
class Exporting(Protocol):
    """A service that keeps what was exported: people may download it."""

    async def document(self, document_id: str, call: ToolCall) -> JsonObject:
        """A whole export: ``{name, format, text, key}``; `key` is the secret that its `ExportLink` is signed with.

        Raises ToolFailure: not_found when there is none, or it is another owner's.
        """
        ...


class PythonRunner(Protocol):
    """The only way in which a service may run Python that a model wrote (PX-10)."""

    async def run(self, code: str, arguments: JsonObject) -> Json:
        """Judge the one function of `code`, and call it with keyword arguments in a process of its own.

        Raises ToolFailure with why it was rejected or stopped.
        """
        ...


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a query may read. `columns`: name and DuckDB type; `rows`: values as Python has them."""

    columns: Sequence[tuple[str, str]]
    rows: Iterable[Sequence[object]]


@dataclass(frozen=True, slots=True)
class QueryRows:
    """What a query found. `code`: the query as it was run; `is_cut`: there would be more rows."""

    columns: tuple[tuple[str, str], ...]
    rows: list[list[Json]]
    is_cut: bool
    code: str = ""


class SqlRunner(Protocol):
    """The only way in which a service may run SQL that a model wrote (PX-10)."""

    async def run(self, code: str, tables: Mapping[str, Table]) -> QueryRows:
        """Judge the one query of `code`, and run it over copies of the tables in a process of its own.

        Raises ToolFailure with why it was rejected or stopped, in a sentence with which it can be repaired.
        """
        ...


class UserMemory(Protocol):
    """What is remembered of the user of a call; in a session without a user, of that session."""

    async def remember(self, call: ToolCall, text: str) -> JsonObject:
        """Keep a sentence about the user; gives `remembered`, and `lasting` beyond this session."""
        ...

    async def recall(self, call: ToolCall, about: str = "") -> list[JsonObject]:
        """What is remembered, with `text`, `why` and `kind`; all without words."""
        ...

    async def forget(self, call: ToolCall, about: str = "", *, everything: bool = False) -> list[str]:
        """Forget what the words are about, all, or else what was said last; the texts of it."""
        ...


class DocumentSearch(Protocol):
    """Looks a question up in the documents that the user of a call may see."""

    async def search(self, call: ToolCall, question: str) -> JsonObject:
        """Give `passages`, best first, with `source`, `title`, `section` and `text`, and their `labels`.

        Raises Unavailable.
        """
        ...


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What a service is made with. `config`: its part of `services` in domain.yaml."""

    records: Records
    config: JsonObject = field(default_factory=JsonObject)
    python: PythonRunner | None = None
    memory: UserMemory | None = None
    sql: SqlRunner | None = None
    documents: DocumentSearch | None = None


class Service:
    """One outside system; its methods are tools.

    A method takes the tool's inputs as keyword arguments, and a `ToolCall` as `call` if its
    signature names one. It is asynchronous, or plain and then run in a thread; it returns the
    output object, or raises ToolFailure.
    """

    def __init__(self, context: ServiceContext) -> None:
        self.records = context.records
        self.config = context.config
        self.python = context.python
        self.memory = context.memory
        self.sql = context.sql
        self.documents = context.documents
