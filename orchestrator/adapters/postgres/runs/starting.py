"""Start a graph of runs: store its nodes, join active runs, or store the graph for a later rerun (IF-11)."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from orchestrator.adapters.postgres.hot_connections import HotConnection
from orchestrator.adapters.postgres.pool import dump_json
from orchestrator.adapters.postgres.statements import statement
from orchestrator.ports.runs.records import Hint, NewRun
from orchestrator.ports.runs.status import OnFailure, RunStatus, Urgency
from orchestrator.types import JsonObject, new_id

ATTEMPTS: Final = 3
"""Maximum number of attempts to start a run while other processes start and end the same flow."""
STARTED_BY_OTHERS: Final = "Other callers are starting or ending the same runs; try again later."
GRACE_S: Final = 1.0
"""Time for a message to arrive before the reconciler sends another, in seconds."""


def identify(runs: tuple[NewRun, ...], key: str | None) -> tuple[str, dict[str, str]]:
    """Return the graph's ID and its runs' IDs by flow.

    `key`: the same key yields the same IDs. None yields new IDs.
    """
    graph_id = new_id("graph") if key is None else f"graph_{_digest(key)}"
    return graph_id, {run.flow: f"run_{_digest(graph_id + '/' + run.flow)}" for run in runs}


async def store_graph(
    transaction: HotConnection,
    runs: tuple[NewRun, ...],
    graph_id: str,
    ids: dict[str, str],
    present: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Hint, ...]:
    """Insert the runs. Raises UniqueViolation if a run exists or a flight key is taken.

    `present`: active runs by flow. Nodes that depend on these flows wait for these runs.
    """
    nodes: list[dict[str, Any]] = []
    for run in runs:
        columns = _columns(run)
        successors = [ids[other.flow] for other in runs if run.flow in other.depends_on]
        joined = [present[name] for name in run.depends_on if name in present]
        earlier = {*joined, *(() if run.after is None else (run.after,))}
        followed = [await _follow(transaction, run, one, ids[run.flow]) for one in sorted(earlier)]
        open_predecessors = len(set(run.depends_on) - present.keys()) + sum(followed)
        nodes.append(
            columns
            | {"run_id": ids[run.flow], "open_predecessors": open_predecessors, "successors": successors}
        )
    arguments = {"graph_id": graph_id, "nodes": dump_json(nodes), "grace_s": GRACE_S}
    return to_hints(await transaction.fetch_all(statement("start_graph"), arguments))


async def _follow(transaction: HotConnection, run: NewRun, earlier: str, run_id: str) -> bool:
    """Queue a run behind an earlier run. Return False if the earlier run has ended."""
    arguments = {"run_id": earlier, "tenant_id": run.tenant_id, "successor": run_id}
    return await transaction.fetch_one(statement("follow_run"), arguments) is not None


async def find_present(
    transaction: HotConnection, runs: tuple[NewRun, ...], ids: Mapping[str, str]
) -> tuple[dict[str, str], bool]:
    """Return the IDs of active runs by flow, and whether these runs may lack inputs from this request.

    Runs from the same request have all inputs. Other runs may lack inputs if one of them has started or
    the request has inputs for them.
    """
    arguments = {
        "tenant_id": runs[0].tenant_id,
        "flight_keys": [run.flight_key for run in runs if run.flight_key is not None],
        "run_ids": list(ids.values()),
    }
    rows = await transaction.fetch_all(statement("find_flights"), arguments)
    same = any(run_id in arguments["run_ids"] for _, run_id, _ in rows)
    begun = any(status == RunStatus.RUNNING for *_, status in rows)
    present = {flow: run_id for flow, run_id, _ in rows}
    given = any(run.inputs for run in runs if run.flow in present)
    return present, (begun or given) and not same


async def remember_again(
    transaction: HotConnection, runs: tuple[NewRun, ...], ids: Mapping[str, str]
) -> bool:
    """Store the graph with its last node's run, so that the end of this run starts the graph again.

    Return False if that run has ended.
    """
    nodes = [_columns(run) for run in runs]
    arguments = {"run_id": ids[runs[-1].flow], "again": dump_json(nodes)}
    return await transaction.fetch_one(statement("remember_again"), arguments) is not None


async def start_again(transaction: HotConnection, run_id: str, nodes: list[JsonObject]) -> tuple[Hint, ...]:
    """Start a stored graph. Nodes whose flow is already running join that run."""
    runs = tuple(_read_node(node) for node in nodes)
    graph_id, ids = identify(runs, f"again:{run_id}")
    present, _ = await find_present(transaction, runs, ids)
    missing = tuple(run for run in runs if run.flow not in present)
    return await store_graph(transaction, missing, graph_id, ids, present) if missing else ()


def _columns(run: NewRun) -> JsonObject:
    return {column.name: getattr(run, column.name) for column in fields(run)}


def _read_node(node: JsonObject) -> NewRun:
    members: JsonObject = {**node, "inputs": tuple(node["inputs"]), "depends_on": tuple(node["depends_on"])}
    members |= {"on_failure": OnFailure(node["on_failure"]), "urgency": Urgency(node["urgency"])}
    return NewRun(**members)


def to_hints(rows: Iterable[Sequence[Any]], after_s: float = 0.0) -> tuple[Hint, ...]:
    """Convert rows with a run's ID, flow and urgency to hints."""
    return tuple(Hint(run_id, flow, Urgency(urgency), after_s) for run_id, flow, urgency in rows)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
