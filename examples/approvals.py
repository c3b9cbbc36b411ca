"""Approvals: two pending approvals, decided out of order, and one that a correction invalidates.

Start `parley up --domain examples/treasury` in one terminal, then in another:

    .venv/bin/python examples/approvals.py

This script acts as the user and the operator.
"""

import sys
from typing import Any

from parley_client import Client
from parley_client.errors import Refused

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8600"


def say(client: Client, session: str, text: str) -> None:
    reply = client.submit(session, text, wait_s=30)["reply"]
    print(f"you:      {text}\nparley:   {reply}\n")


def asked(client: Client, session: str, tool_id: str) -> Any:
    """Return the pending approval for a tool."""
    pending = client.approvals("pending", session_id=session)
    return next(approval for approval in pending if approval["tool_id"] == tool_id)


def decide(client: Client, approval: Any, decision: str, reason: str) -> None:
    """Decide an approval as the operator, and print the assistant's message."""
    try:
        decided = client.decide_approval(approval["approval_id"], decision, reason=reason)
    except Refused as error:
        print(f"operator: {decision} {approval['tool_id']} {approval['arguments']}\nparley:   {error}\n")
        return
    turn = client.turn(decided["resumed_by"], wait_s=30)
    print(f"operator: {decision} {approval['tool_id']} {approval['arguments']}\nparley:   {turn['reply']}\n")


def main() -> None:
    with Client(URL) as client:
        session = client.create_session("treasury")["session_id"]
        say(client, session, "pay the invoice of Acme")
        acme = asked(client, session, "invoice_pay")
        say(client, session, "close the account of Madrid")
        madrid = asked(client, session, "account_close")
        say(client, session, "who approves this?")
        decide(client, acme, "grant", "checked")  # the first, even though Madrid was requested last
        decide(client, madrid, "deny", "Madrid stays open")

        say(client, session, "pay the invoice of Globex")
        globex = asked(client, session, "invoice_pay")
        say(client, session, "sorry, Initech")
        decide(client, globex, "grant", "checked")  # invalid: the user has corrected the request
        decide(client, asked(client, session, "invoice_pay"), "grant", "checked")
        print("ledger:", [(line["arguments"], line["status"]) for line in client.effects(session)])


if __name__ == "__main__":
    main()
