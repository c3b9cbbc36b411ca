"""Measure the throughput of `parley replay` on the built-in domains' test conversations.

First, the conversations run on the production path, each in a new session. They are repeated until there are enough
sessions to replay.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Final

from benchmarks.environment import ROOT, Report, open_lanes, open_stores, parse
from lab.evaluation.conversations import insert, payload_of, read_file, values_of
from lab.replay.running import Wanted, replay
from orchestrator.bootstrap import Ports
from orchestrator.domain.evaluations import ConversationEntry
from orchestrator.runtime.lane import LaneRunner
from orchestrator.turns.turn import Submission, TurnInput, turn_object
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, UserId
from parley.embedded import Stores
from parley.output import progress

DOMAINS: Final = ("travel", "analytics")
BAR: Final = 500.0


def main() -> int:
    arguments = parse(
        "benchmarks.replay",
        __doc__,
        conversations=(200, "number of conversations"),
        processes=(os.cpu_count() or 1, "concurrent processes"),
        bar=(BAR, "minimum turns per second; exits with 1 below it"),
    )
    report, kept = Report("replay", as_json=arguments.json), True
    with open_stores() as (running, _):
        with progress("conversations") as counted:
            asyncio.run(hold_all(running, arguments.conversations, counted))
        rows: list[JsonObject] = []
        for domain in DOMAINS:
            wanted = Wanted(last=arguments.conversations, of=domain)
            _, sessions, seconds = replay(running.database_url, wanted, processes=arguments.processes)
            turns = sum(one["turns"] for one in sessions)
            different = sum(len(one["different"]) for one in sessions)
            rows.append({"domain": domain, "sessions": len(sessions), "turns": turns, "differing": different})
            rows[-1] |= {"seconds": seconds, "turns/s": turns / seconds}
            kept &= not different
        report.rows("rates", rows)
    rate = sum(row["turns"] for row in rows) / sum(row["seconds"] for row in rows)
    report.rows("all", [{"turns/s": rate, "bar": arguments.bar, "kept": rate >= arguments.bar}])
    report.end()
    return 0 if kept and rate >= arguments.bar else 1


async def hold_all(running: Stores, count: int, counted: Callable[[int, int], None]) -> None:
    async with open_lanes(running) as (ports, lanes):
        held = islice(cycle([one for domain in DOMAINS for one in conversations(domain)]), count)
        for number, (domain, conversation) in enumerate(held):
            await hold(ports, lanes, domain, conversation, f"{domain}-{number}")
            counted(number + 1, count)


def conversations(domain: str) -> Iterator[tuple[str, ConversationEntry]]:
    """Yield a built-in domain's test conversations that use its default configuration, each with the domain's name."""
    for path in sorted((ROOT / "domains" / domain / "evaluations").glob("*.yaml")):
        yield from ((domain, one) for one in read_file(path).conversations if not one.config)


async def hold(
    ports: Ports, lanes: LaneRunner, domain: str, conversation: ConversationEntry, name: str
) -> None:
    """Run a conversation in a new session with the ID `name`, as a separate user."""
    remembered: dict[str, str] = {}
    offered: list[JsonObject] = []
    for entry in conversation.turns:
        if entry.action is None:
            given = TurnInput(text=insert(entry.user or "", remembered))
        else:
            payload = payload_of(entry.action, offered)
            given = TurnInput(action={"name": entry.action["name"], "payload": payload})
        turn = await say(ports, lanes, SessionId(name), domain, given)
        offered = turn["actions"]
        remembered |= values_of(turn)


async def say(
    ports: Ports, lanes: LaneRunner, session_id: SessionId, domain: str, given: TurnInput
) -> JsonObject:
    submission = Submission(
        session_id,
        given,
        DEFAULT_TENANT,
        create_session=True,
        domain=domain,
        user_id=UserId(f"user of {session_id}"),
    )
    receipt = await ports.stores.inbox.submit(submission)
    await lanes.run(session_id)
    return turn_object(await ports.stores.inbox.turn(DEFAULT_TENANT, receipt.turn_id))


if __name__ == "__main__":
    sys.exit(main())
