"""Each turn is one task in Flower, with the stored status, its time and its worker."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from celery import Celery

from orchestrator.ports.tasks import CANCEL_TURN
from tests.celery_clients import celery_client, submit_turn
from tests.integration.chaos.fleet import Fleet, fleet, wait_until
from tests.integration.flower.server import flower, tasks
from tests.processes.rows import read_rows
from workers.messages.flower_events import RUN_TURN

AUTH = ("flower", "open-sesame")
STATES = {"done": "SUCCESS", "failed": "FAILURE", "quarantined": "FAILURE", "cancelled": "REVOKED"}
WITHIN_S = 90
SAID = {"quick": "say xylophone", "slow": "wait 0.5", "fail": "fail"}


def test_turns_are_shown_as_they_ended(database_url: str, redis_url: str, tmp_path: Path) -> None:
    """IF-16, RT-22: answered, failing, poisonous, canceled, and taken over from a killed worker."""
    environment = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "FLOWER_BASIC_AUTH": ":".join(AUTH)}
    go_on = tmp_path / "go-on"
    with (
        flower(environment, tmp_path / "flower.log") as url,
        fleet(database_url, redis_url, tmp_path, {"PARLEY_LEASE_TTL_S": "3"}) as crew,
        celery_client(redis_url) as sender,
    ):
        crew.start(1, options=("-E",))
        first = {name: submit(sender, name, text) for name, text in SAID.items()}
        cancelled = submit(sender, "cancelled", f"until {tmp_path / 'never'}")
        taken = submit(sender, "taken-over", f"until {go_on}")
        for turn_id in (cancelled, taken):
            wait_until(
                lambda turn_id=turn_id: state(url, turn_id) == "STARTED",
                within_s=WITHIN_S,
                what="it is at work",
            )
        sender.send_task(
            CANCEL_TURN, kwargs={"turn_id": cancelled, "session_id": "seen-cancelled"}, queue="submissions"
        )
        wait_until(lambda: status(crew, cancelled) == "cancelled", within_s=WITHIN_S, what="it is cancelled")
        for turn_id in first.values():
            wait_until(
                lambda turn_id=turn_id: status(crew, turn_id) in STATES,
                within_s=WITHIN_S,
                what="it has ended",
            )
        ends = {turn_id: STATES[status(crew, turn_id)] for turn_id in (*first.values(), cancelled)}
        wait_until(lambda: states(url, ends) == ends, within_s=20, what=f"Flower shows {ends}")
        killed = crew.workers[0]
        killed.kill()
        crew.start(1, options=("-E",))
        go_on.touch()
        wait_until(
            lambda: status(crew, taken) == "done", within_s=WITHIN_S, what="another worker has ended it"
        )
        # A dying worker loses the events of its last moments, so the next turn ends it only afterwards.
        wait_until(
            lambda: state(url, taken) == "SUCCESS", within_s=20, what="Flower shows the turn taken over"
        )

        first["exit"] = poison(crew, sender)
        wanted = {turn_id: STATES[status(crew, turn_id)] for turn_id in (*first.values(), cancelled, taken)}
        assert sorted(wanted.values()) == ["FAILURE", "FAILURE", "REVOKED", "SUCCESS", "SUCCESS", "SUCCESS"]
        wait_until(lambda: states(url, wanted) == wanted, within_s=20, what=f"Flower shows {wanted}")
        shown = tasks(url, AUTH)

    slow, poisonous = shown[first["slow"]], shown[first["exit"]]
    assert {shown[turn_id]["name"] for turn_id in wanted} == {RUN_TURN}
    assert 0.4 <= slow["runtime"] < 5  # times are rounded in transfer
    assert slow["worker"].startswith("w0")
    assert shown[taken]["worker"].startswith("w1")
    assert "seen-exit" in poisonous["args"]
    assert "xylophone" not in str(shown), "contents are not shown"
    assert {uuid for uuid, task in shown.items() if task["name"] == RUN_TURN} == set(wanted)


def poison(crew: Fleet, sender: Celery) -> str:
    """Submit a turn that ends each of its workers, and wait for quarantine. Its sender may get no receipt."""
    submit_turn(sender, "seen-exit", "exit", ignore_result=True)
    found: list[tuple[str, str]] = []

    def is_quarantined() -> bool:
        found[:] = turns_of(crew, "seen-exit")
        return replaced(crew) and any(status == "quarantined" for _, status in found)

    wait_until(is_quarantined, within_s=WITHIN_S, what="it is quarantined")
    return found[0][0]


def replaced(crew: Fleet) -> bool:
    """Replace a worker that a turn ended."""
    ended = [one for one in crew.workers if one.process.poll() is not None]
    alive = len(crew.workers) - len(ended)
    if alive == 0:
        crew.launch(options=("-E",))
    return alive > 0


def submit(sender: Celery, name: str, text: str) -> str:
    return submit_turn(sender, f"seen-{name}", text).get(timeout=WITHIN_S)["turn_id"]


def state(url: str, turn_id: str) -> str | None:
    return tasks(url, AUTH).get(turn_id, {}).get("state")


def states(url: str, turn_ids: Iterable[str]) -> dict[str, str | None]:
    shown = tasks(url, AUTH)
    return {turn_id: shown.get(turn_id, {}).get("state") for turn_id in turn_ids}


def turns_of(crew: Fleet, session_id: str) -> list[tuple[str, str]]:
    return read_rows(
        crew.database_url, "SELECT turn_id, status FROM turns WHERE session_id = %s", [session_id]
    )


def status(crew: Fleet, turn_id: str) -> str:
    [(found,)] = read_rows(crew.database_url, "SELECT status FROM turns WHERE turn_id = %s", [turn_id])
    return found
