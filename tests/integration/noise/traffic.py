"""Noisy traffic: every interface is used correctly and incorrectly, and each answer is stored."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
import jwt

from orchestrator.ports.tasks import SUBMIT_TURN
from parley.testing.scripted_model import Answer, Computed, Fail, Raw, Reply, Request, Rule, Script
from tests.celery_clients import celery_client
from tests.integration.chaos.fleet import wait_until
from tests.integration.noise.canaries import CONTENTS, SECRETS
from tests.integration.noise.deployed import Place, run_command

TALK = ("weigh", "open", "stamps of", "track", "insurance of", "photograph")
"""Messages, one for each tool. The last five fail, each differently."""


@dataclass
class Noise:
    """Results. `bodies`: answers by request. `secrets`: secrets created during the run."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    problems: list[bytes] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)

    def keep(self, answer: httpx.Response) -> httpx.Response:
        self.bodies[f"{len(self.bodies)} {answer.request.method} {answer.request.url.path}"] = answer.content
        if "problem" in answer.headers.get("Content-Type", ""):
            self.problems.append(answer.content)
        return answer


def rude_script() -> Script:
    """Return a model script that fails in every way, quoting its key and the request, and sometimes answers."""

    def quoting(status: int) -> Computed:
        def refuse(request: Request) -> Fail:
            return Fail(status, message=f"Incorrect API key {SECRETS['model']} for {request.messages}")

        return Computed(refuse)

    said = Answer(text=f"Sure: {CONTENTS['worded']}, says {SECRETS['model']}")
    chat = Answer(json={"kind": "chitchat", "flows": [], "slots": {"note": CONTENTS["worded"]}})
    html: Reply = Raw(f"<p>{SECRETS['model']} {CONTENTS['worded']}</p>", "text/html")
    replies = (quoting(401), quoting(500), said, html, quoting(400), quoting(429), chat)
    return Script(rules=(Rule(prompt="nlu_think", replies=replies * 3),), default=quoting(500))


def talk_over_http(url: str, there: Place, noise: Noise) -> None:
    """Use sessions, documents, feedback, runs and webhooks, as an operator and as a user with a token."""
    noise.secrets["operator's key"] = operator = _make_key(there, "desk", "--operator")
    noise.secrets["backend's key"] = backend = _make_key(there, "shop")
    noise.secrets["user's token"] = token = _make_token()
    with _client(url, operator) as desk, _client(url, backend) as shop, _client(url, token) as ann:
        noise.secrets["webhook secret"] = desk.post("/v1/webhooks/secret").raise_for_status().json()["secret"]
        noise.keep(
            desk.post("/v1/webhooks", json={"url": f"{there.outside.url}/hooks/all"})
        ).raise_for_status()
        noise.secrets["second webhook secret"] = desk.post("/v1/webhooks/secret").json()["secret"]
        session = noise.keep(ann.post("/v1/sessions", json={})).raise_for_status().json()["session_id"]
        _talk(ann, session, noise)
        _look_around(ann, desk, session, noise)
        _ask_wrongly(ann, shop, url, session, noise)


def _talk(ann: httpx.Client, session: str, noise: Noise) -> None:
    turns = f"/v1/sessions/{session}/turns"
    turn_id = ""
    for words in (*TALK, f"hm {CONTENTS['said']}", f"well {CONTENTS['said']}", f"so {CONTENTS['said']}"):
        text = f"{words} {CONTENTS['slot']}" if words in TALK else words
        answer = noise.keep(ann.post(turns, params={"wait": 30}, json={"text": text}))
        assert answer.json()["status"] == "done", answer.text
        turn_id = answer.json()["turn_id"]
    noise.keep(ann.post(turns, json={"action": {"name": "choose", "payload": CONTENTS["action"]}}))
    feedback = {"rating": "down", "comment": CONTENTS["feedback"]}
    noise.keep(ann.post(f"/v1/turns/{turn_id}/feedback", json=feedback)).raise_for_status()


def _look_around(ann: httpx.Client, desk: httpx.Client, session: str, noise: Noise) -> None:
    """Read contents. Their answers are contents, so only errors are stored."""
    document = {"title": CONTENTS["document"], "text": f"The {CONTENTS['document']} is heavy."}
    desk.post("/v1/documents", json=document).raise_for_status()
    desk.get("/v1/documents/search", params={"q": CONTENTS["document"]})
    body = {"flow": "summarize_session", "session_id": session, "parameters": {"x": CONTENTS["run"]}}
    noise.keep(desk.post("/v1/runs", json=body))
    noise.keep(desk.post("/v1/runs", json={"flow": "distil_preferences", "inputs": [CONTENTS["run"]]}))
    ticket = ann.post("/v1/tickets").raise_for_status().json()["ticket"]
    noise.secrets["ticket"] = ticket
    for path in (f"/v1/sessions/{session}/events", f"/v1/sessions/{session}"):
        httpx.get(f"{ann.base_url}{path}", params={"access_token": ticket, "follow": "false"})


def _ask_wrongly(ann: httpx.Client, shop: httpx.Client, url: str, session: str, noise: Noise) -> None:
    noise.secrets["ill-made key"] = wrong = "parley_3f2a91c07d5e8b64_canaryAAAAAAAAAAAAAAAA"
    noise.secrets["ill-made token"] = forged = noise.secrets["user's token"][:-8] + "canaryZZ"
    turns, invalid = f"/v1/sessions/{session}/turns", CONTENTS["invalid"]
    for credential in (wrong, forged, SECRETS["wrong password"]):
        with _client(url, credential) as stranger:
            noise.keep(stranger.get("/v1/sessions"))
            noise.keep(stranger.post(turns, json={"text": invalid}))
    key = noise.secrets["backend's key"]
    noise.keep(httpx.get(f"{url}/v1/sessions", params={"access_token": key}))
    for body in (
        {"text": 3, "x": invalid},
        {"text": invalid * 9000},
        {"action": {"name": f"{invalid} !"}},
        [invalid],
    ):
        noise.keep(ann.post(turns, json=body))
    noise.keep(ann.post(turns, content=b'{"text": "' + invalid.encode()))
    noise.keep(shop.post("/v1/sessions", json={"domain": f"../{invalid}"}))


def send_over_the_queue(there: Place) -> None:
    """Submit over the queue, correctly and incorrectly."""
    url = there.redis_urls["sender"]
    with celery_client(url) as app:

        def send(task: str, queue: str, text: str, **more: Any) -> Any:
            return app.send_task(task, kwargs={"text": text, **more}, queue=queue)

        said = f"weigh {CONTENTS['submitted']}"
        done = send(SUBMIT_TURN, "submissions", said, session_id="queued", wait=30).get(timeout=60)
        assert done["status"] == "done", done
        sent = send(SUBMIT_TURN, "submissions", CONTENTS["invalid"], session_id="no session!")
        refused = sent.get(timeout=30, propagate=False)
        assert refused.args[0] == "invalid_input", refused
        send("nothing.of_ours", "submissions", CONTENTS["unknown task"])
        with app.connection_for_write() as connection, connection.SimpleQueue("submissions") as queue:
            text = CONTENTS["malformed"]
            queue.put(f"{{{text}", content_type="application/json", content_encoding="utf-8")
            queue.put({"text": text}, headers={"task": SUBMIT_TURN, "id": text})
            queue.put([text, [text], {}], headers={"task": SUBMIT_TURN, "id": text, "eta": text})
            queue.put([[], {"text": text}, {}], headers={"task": SUBMIT_TURN, "id": 7, "argsrepr": text})
            queue.put(
                pickle.dumps({"text": CONTENTS["pickled"]}),
                headers={"task": SUBMIT_TURN, "id": "p"},
                content_type="application/x-python-serialize",
                content_encoding="binary",
            )
        after = send(SUBMIT_TURN, "submissions", said, session_id="queued", wait=30).get(timeout=60)
        assert after["status"] == "done", "the worker goes on"


def break_the_database(url: str, there: Place, noise: Noise) -> None:
    """Break the database for a moment. Afterwards a turn is answered."""
    with _client(url, noise.secrets["user's token"]) as ann:
        session = ann.post("/v1/sessions", json={}).raise_for_status().json()["session_id"]
        turns = f"/v1/sessions/{session}/turns"
        with there.broken_database():
            ends_at = time.monotonic() + 2
            while time.monotonic() < ends_at:
                noise.keep(ann.post(turns, json={"text": f"weigh {CONTENTS['slot']}"}))
                time.sleep(0.3)

        def answered() -> bool:
            answer = ann.post(turns, params={"wait": 10}, json={"text": f"weigh {CONTENTS['slot']}"})
            return answer.is_success and answer.json()["status"] == "done"

        wait_until(answered, within_s=60, what="a turn is answered after the database is back")


def run_commands(there: Place, url: str, noise: Noise) -> None:
    """Run the doctor, and commands that fail with secrets in their environment."""
    worker = there.environment("runtime", "worker", OPENAI_API_KEY=SECRETS["model"], PARLEY_URL=url)
    wrong = SECRETS["wrong password"]
    refused = {
        **worker,
        "DATABASE_URL": there.logins["runtime"].replace("noisy_runtime:", f"noisy_runtime:{wrong}"),
        "REDIS_URL": f"redis://parley-worker:{wrong}@127.0.0.1:{there.redis_urls['worker'].rpartition(':')[2]}",
        "OPENAI_BASE_URL": f"http://ann:{wrong}@127.0.0.1:1/v1",
    }
    nowhere = {**worker, "PARLEY_URL": f"http://ann:{wrong}@127.0.0.1:1"}
    incomplete = {**worker, "DATABASE_URL": ""}
    runs = {
        "doctor": (worker, ("-m", "parley", "doctor", "--json")),
        "doctor that is refused": (refused, ("-m", "parley", "doctor", "--verbose")),
        "sessions of nowhere": (nowhere, ("-m", "parley", "sessions", "--verbose")),
        "worker without settings": (
            {**incomplete, "PARLEY_LEASE_TTL_S": "no"},
            ("-m", "celery", "-A", "workers.app", "worker"),
        ),
    }
    for name, (environment, words) in runs.items():
        noise.bodies[f"command: {name}"] = run_command(environment, *words)


def _client(url: str, credential: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {credential}"})


def _make_key(there: Place, *words: str) -> str:
    made = run_command({"DATABASE_URL": there.database_url}, "-m", "parley", "keys", "create", *words)
    return made.decode().split()[0]


def _make_token() -> str:
    claims = {
        "iss": "https://id.example",
        "aud": "parley",
        "sub": "ann",
        "tenant": "default",
        "exp": time.time() + 3600,
    }
    return jwt.encode(claims, SECRETS["signing"], algorithm="HS256")
