"""A tool that answers later: a bank accepts a payment and confirms it a few turns later.

Start `parley up --domain examples/donations` in one terminal, then in another:

    .venv/bin/python examples/answer_later.py

This script acts as the user and the bank.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue

import httpx

from parley_client import Client

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8600"
BANK = ("127.0.0.1", 8711)  # as in examples/donations/tools.yaml
charges: "Queue[dict[str, str]]" = Queue()


class Bank(BaseHTTPRequestHandler):
    """A bank that accepts every charge and later posts its result to the callback URL."""

    def do_POST(self) -> None:
        charges.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(202)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def say(client: Client, session: str, text: str) -> str:
    reply = client.submit(session, text, wait_s=30)["reply"]
    print(f"you:    {text}\nparley: {reply}\n")
    return reply


def confirm(client: Client, session: str, charge: dict[str, str], result: dict[str, object]) -> None:
    """Post the result to the callback URL, twice as banks do, and print the assistant's message."""
    print(f"(the bank posts {json.dumps(result)})\n")
    for _ in range(2):
        answer = httpx.post(charge["callback_url"], json=result)
        answer.raise_for_status()
    for event in client.stream(session):
        if event.turn_id == answer.json()["turn_id"] and event.type == "answer":
            print(f"parley: {event.payload['reply']}\n")
            return


def main() -> None:
    bank = HTTPServer(BANK, Bank)
    threading.Thread(target=bank.serve_forever, daemon=True).start()
    with Client(URL) as client:
        session = client.create_session("donations")["session_id"]
        say(client, session, "I'd like to donate 20 euros for the bees")
        say(client, session, "yes")
        say(client, session, "where does the money go?")
        confirm(client, session, charges.get(timeout=30), {"status": "done", "data": {"receipt": "R-17"}})

        say(client, session, "give 500 euros to the rivers")
        say(client, session, "yes")
        declined = {"status": "failed", "message": "Your bank has declined the payment."}
        confirm(client, session, charges.get(timeout=30), declined)
        print("ledger:", [(line["tool_id"], line["status"]) for line in client.effects(session)])


if __name__ == "__main__":
    main()
