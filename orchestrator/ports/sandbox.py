"""The ports to the processes that run Python and SQL which a model wrote: what goes in, how it can end.

Which code is fit to be sent there is decided by the guardrails before. There is no twin in
memory: one that ran the code in this process would be what the ports exist to prevent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from orchestrator.domain.services import QueryRows, Table
from orchestrator.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Upper bounds of one run.

    `memory_bytes` bounds the whole address space, of which the interpreter itself takes about 40 MB.
    """

    wall_s: float = 5.0
    cpu_s: int = 5
    memory_bytes: int = 256 * 1024 * 1024
    output_bytes: int = 1024 * 1024


class StopCategory(StrEnum):
    """Why a run gave no result."""

    TIMEOUT = "timeout"
    """Wall clock or processor time is used up."""
    MEMORY = "memory"
    FORBIDDEN = "forbidden"
    """It reached for a file, the network, a process, a module or another thing outside itself."""
    ERROR = "error"
    """The function raised, cannot be compiled or called, or returned what is no JSON."""
    OUTPUT_TOO_LARGE = "output_too_large"
    UNAVAILABLE = "unavailable"
    """The process could not be started or not be isolated; nothing of the code has run."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The function's result; data of unknown intent, like everything that comes from a model."""

    value: Json


@dataclass(frozen=True, slots=True)
class Stopped:
    """No result. `message`: a sentence with which a model can write the function better."""

    category: StopCategory
    message: str


SandboxResult: TypeAlias = Returned | Stopped


class Sandbox(Protocol):
    """Runs code that a model wrote, where it can reach nothing (PX-10)."""

    async def run_python(
        self,
        function_source: str,
        arguments: JsonObject,
        limits: SandboxLimits = ...,
        *,
        imports: frozenset[str] = ...,
    ) -> SandboxResult:
        """Call the one function of a source with keyword arguments, away from this process.

        Args:
            function_source: a module with exactly one function, as the guardrails approved it.
            arguments: by parameter name; JSON.
            limits: bounds of this run.
            imports: modules of the standard library that the source may import.
        """
        ...


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Upper bounds of one query. `rows`: more are cut off, which the result says.

    `process.memory_bytes` bounds the whole address space, of which the interpreter and the database take
    about 200 MB before they have any rows.
    """

    rows: int = 10_000
    process: SandboxLimits = field(
        default_factory=lambda: SandboxLimits(
            wall_s=10.0, cpu_s=8, memory_bytes=768 * 1024 * 1024, output_bytes=8 * 1024 * 1024
        )
    )


class SqlSandbox(Protocol):
    """Runs a query that a model wrote, where it finds the given tables and nothing else (PX-10)."""

    async def run_sql(
        self, statement: str, tables: Mapping[str, Table], limits: QueryLimits = ...
    ) -> QueryRows | Stopped:
        """Ask one question of copies of the tables, away from this process.

        Args:
            statement: one query, as the guardrails approved it.
            tables: everything that the query can find, by name.
            limits: bounds of this query; time and memory are held by the kernel.
        """
        ...
