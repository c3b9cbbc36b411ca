"""Ports to processes that run model-written Python and SQL: their input and possible results.

The guardrails check code beforehand. There is no in-memory implementation: it would run the code in this
process, which the ports exist to prevent.
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

    `memory_bytes`: the whole address space, of which the interpreter itself needs about 40 MB.
    """

    wall_s: float = 5.0
    cpu_s: int = 5
    memory_bytes: int = 256 * 1024 * 1024
    output_bytes: int = 1024 * 1024


class StopCategory(StrEnum):
    """The reason why a run has no result."""

    TIMEOUT = "timeout"
    """The wall-clock or CPU time limit was reached."""
    MEMORY = "memory"
    FORBIDDEN = "forbidden"
    """The code accessed a file, the network, a process, a module or something else outside."""
    ERROR = "error"
    """The function raised, cannot be compiled or called, or returned a non-JSON value."""
    OUTPUT_TOO_LARGE = "output_too_large"
    UNAVAILABLE = "unavailable"
    """The process could not be started or isolated; no code has run."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The function's result: untrusted data, like everything from a model."""

    value: Json


@dataclass(frozen=True, slots=True)
class Stopped:
    """No result. `message`: a sentence that helps a model to fix the function."""

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
        """Call the only function of a source with keyword arguments, in another process.

        Args:
            function_source: a module with exactly one function, approved by the guardrails.
            arguments: by parameter name; JSON.
            limits: limits of this run.
            imports: standard-library modules that the source can import.
        """
        ...


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of one query. `rows`: further rows are dropped, which the result reports.

    `process.memory_bytes`: the whole address space, of which interpreter and database need about 200 MB
    without any rows.
    """

    rows: int = 10_000
    process: SandboxLimits = field(
        default_factory=lambda: SandboxLimits(
            wall_s=10.0, cpu_s=8, memory_bytes=768 * 1024 * 1024, output_bytes=8 * 1024 * 1024
        )
    )


class SqlSandbox(Protocol):
    """An isolated environment for model-written queries on the given tables only (PX-10)."""

    async def run_sql(
        self, statement: str, tables: Mapping[str, Table], limits: QueryLimits = ...
    ) -> QueryRows | Stopped:
        """Run one query on copies of the tables, in another process.

        Args:
            statement: one query, approved by the guardrails.
            tables: all tables of the query, by name.
            limits: limits of this query; the kernel enforces time and memory.
        """
        ...
