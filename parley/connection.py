"""Which gateway a command talks to: ``--url``, ``PARLEY_URL``, or the `parley up` of the data folder."""

from pathlib import Path

from orchestrator.client import Client
from orchestrator.errors import Unavailable
from orchestrator.settings.environment import read_variable
from parley.data_folder import UpNote, is_held


def locate_gateway(url: str | None, data_dir: Path) -> str | None:
    """The address of a gateway, or None when nothing names one."""
    named = url or read_variable("PARLEY_URL")
    if named:
        return named
    note = UpNote.read(data_dir)
    return note.url if note is not None and is_held(data_dir) else None


def connect(url: str | None, data_dir: Path) -> Client:
    """A client of the gateway. Raises Unavailable when there is none to talk to."""
    found = locate_gateway(url, data_dir)
    if found is None:
        raise Unavailable(
            f"No gateway runs on {data_dir}: start one with `parley up`, or name one with --url."
        )
    return open_client(found)


def open_client(url: str) -> Client:
    """A client with the key of the environment, if there is one."""
    return Client(url, api_key=read_variable("PARLEY_API_KEY"))
