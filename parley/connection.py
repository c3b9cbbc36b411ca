"""Find the gateway: ``--url``, ``PARLEY_URL``, or a running `parley up`, in this order."""

from pathlib import Path

from orchestrator.errors import Unavailable
from orchestrator.settings.environment import read_variable
from parley.data_folder import UpNote, is_held
from parley_client import Client


def locate_gateway(url: str | None, data_dir: Path) -> str | None:
    """Return the gateway URL, or None if no gateway is configured or running."""
    named = url or read_variable("PARLEY_URL")
    if named:
        return named
    note = UpNote.read(data_dir)
    return note.url if note is not None and is_held(data_dir) else None


def connect(url: str | None, data_dir: Path) -> Client:
    """Return a client for the gateway. Raises Unavailable if no gateway is configured or running."""
    found = locate_gateway(url, data_dir)
    if found is None:
        raise Unavailable(f"No gateway is running in {data_dir}: start one with `parley up`, or use --url.")
    return open_client(found)


def open_client(url: str) -> Client:
    """Return a client that sends PARLEY_API_KEY, if set."""
    return Client(url, api_key=read_variable("PARLEY_API_KEY"))
