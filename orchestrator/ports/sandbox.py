"""Ports for processes that run model-written Python and SQL after the guardrails have checked the code.

There is no in-memory adapter, because it would run untrusted code in the worker's process.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from orchestrator.domain.services import QueryRows, Table
from orchestrator.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of one run.

    `memory_bytes`: for Python, what the code allocates; for SQL, the process's whole address space.
    """

    wall_s: float = 5.0
    cpu_s: int = 5
    memory_bytes: int = 256 * 1024 * 1024
    output_bytes: int = 1024 * 1024


class StopCategory(StrEnum):
    """The reason why a run has no result."""

    TIMEOUT = "timeout"
    """The code reached the limit of wall-clock or CPU time."""
    MEMORY = "memory"
    FORBIDDEN = "forbidden"
    """The code tried to access a file, the network, a process, a module or another outside resource."""
    ERROR = "error"
    """The function raised, could not be compiled or called, or returned a value that is not JSON."""
    OUTPUT_TOO_LARGE = "output_too_large"
    UNAVAILABLE = "unavailable"
    """The process could not be started or isolated, so the code did not run."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The result of model-written code. `value`: untrusted, like all data from a model."""

    value: Json


@dataclass(frozen=True, slots=True)
class Stopped:
    """A run without a result. `message`: a sentence that helps the model fix the code."""

    category: StopCategory
    message: str


SandboxResult: TypeAlias = Returned | Stopped


class Sandbox(Protocol):
    """An isolated environment for model-written code (PX-10)."""

    async def run_python(
        self,
        function_source: str,
        arguments: JsonObject,
        limits: SandboxLimits = ...,
        *,
        imports: frozenset[str] = ...,
    ) -> SandboxResult:
        """Call a function with keyword arguments in a separate process.

        Args:
            function_source: the source of exactly one function, approved by the guardrails.
            arguments: JSON values by parameter name.
            limits: limits for this run.
            imports: standard-library modules that the source can import.
        """
        ...


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of one query.

    Args:
        rows: maximum number of rows. The result indicates if rows were dropped.
        process: limits of the process. Without any rows, the interpreter and the database need about 200 MB
            of address space.
    """

    rows: int = 10_000
    process: SandboxLimits = field(
        default_factory=lambda: SandboxLimits(
            wall_s=10.0, cpu_s=8, memory_bytes=768 * 1024 * 1024, output_bytes=8 * 1024 * 1024
        )
    )


class SqlSandbox(Protocol):
    """An isolated environment for model-written queries (PX-10)."""

    async def run_sql(
        self, statement: str, tables: Mapping[str, Table], limits: QueryLimits = ...
    ) -> QueryRows | Stopped:
        """Run a query on copies of the tables in a separate process.

        Args:
            statement: a single query, approved by the guardrails.
            tables: the tables that the query can read, by name.
            limits: limits for this query. The kernel enforces the time and memory limits.
        """
        ...
