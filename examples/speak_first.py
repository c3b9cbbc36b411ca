"""The assistant speaks first: a reminder that the user sets, moves and cancels, and an event from a backend.

Start `parley up` in one terminal, then in another:

    .venv/bin/python examples/speak_first.py

The flight leaves in three days; the script moves its reminder to now.
"""

import sys
from datetime import UTC, datetime, timedelta

from parley_client import Client

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8600"


def say(client: Client, session: str, text: str) -> str:
    reply = client.submit(session, text, wait_s=30)["reply"]
    print(f"you:    {text}\nparley: {reply}\n")
    return reply


def listen(client: Client, session: str, turn_id: str) -> None:
    """Wait for a turn that the assistant starts, and print its answer. Browsers and webhooks receive the same event."""
    for event in client.stream(session):
        if event.turn_id == turn_id and event.type == "answer":
            print(f"parley: {event.payload['reply']}\n")
            return


def main() -> None:
    day = datetime.now(UTC) + timedelta(days=3)
    with Client(URL) as client:
        session = client.create_session("travel")["session_id"]
        say(client, session, f"Book a flight from Oslo to Madrid on {day:%d %B %Y}")
        booked = say(client, session, "yes")
        reference = booked.partition("reference is ")[2][:6]

        say(client, session, "remind me an hour before")
        say(client, session, "make it two hours before")
        [reminder] = client.scheduled_events(session)
        print(f"(the reminder is due at {reminder['not_before']}; it is moved to now)\n")
        moved = client.move_event(session, reminder["event_id"], datetime.now(UTC))
        listen(client, session, moved["turn_id"])

        print("(the airline tells your backend that the flight has changed)\n")
        sent = client.send_event(session, "flight_changed", {"booking_ref": reference})
        listen(client, session, sent["turn_id"])

        say(client, session, "remind me a day before my flight")
        say(client, session, "don't")
        print(
            "reminders to come:",
            [one for one in client.scheduled_events(session) if one["status"] == "scheduled"],
        )


if __name__ == "__main__":
    main()
