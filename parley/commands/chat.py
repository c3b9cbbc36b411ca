import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import FolderInUse, ProcessFailed
from parley.commands.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_DOMAIN,
    AsJson,
    DataDir,
    LocaleOption,
    TimezoneOption,
    Url,
    resolve_domain,
)
from parley.connection import locate_gateway, open_client
from parley.data_folder import hold, trained_folder
from parley.output import say
from parley.signals import stop_on_signals
from parley.terminal.conversation import Conversation, Place
from parley.terminal.pipe import talk_in_pipe

app = typer.Typer()

_PRIVATE_PREFIX = "parley-chat-"


@app.command()
def chat(
    domain: Annotated[
        str | None, typer.Option(help="Name of a built-in domain, or path to a domain folder.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="ID of the session to continue or create.")] = None,
    user: Annotated[
        str | None,
        typer.Option(help="User ID. Parley uses and saves this user's preferences."),
    ] = None,
    timezone: TimezoneOption = None,
    locale: LocaleOption = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Chat with an assistant. Connects to a configured or running gateway, or starts a private system.

    With piped input, each line is one turn.
    """
    chosen = None if domain is None else resolve_domain(domain)
    with stop_on_signals(), ExitStack() as stack:
        gateway = locate_gateway(url, data_dir) or stack.enter_context(
            _private_gateway(chosen, data_dir, lasting=user is not None or session is not None)
        )
        client = stack.enter_context(open_client(gateway))
        # The gateway identifies a domain folder by its name.
        named = None if chosen is None else Path(chosen).name
        place = Place(timezone, locale)
        conversation = Conversation.begin(client, domain=named, session_id=session, user_id=user, place=place)
        _talk(conversation, data_dir, as_json=as_json)


def _talk(conversation: Conversation, data_dir: Path, *, as_json: bool) -> None:
    if as_json or not sys.stdin.isatty():
        talk_in_pipe(conversation, sys.stdin.buffer, as_json=as_json)
        return
    from parley.terminal.talk import talk_in_terminal  # noqa: PLC0415  # slow to import, and only terminals need it

    talk_in_terminal(conversation, data_dir)


@contextmanager
def _private_gateway(domain: str | None, data_dir: Path, *, lasting: bool) -> Iterator[str]:
    """Run a private stack and yield its URL. `lasting`: True to keep the data for later runs.

    The stack runs in `data_dir` if `lasting`, or in a temporary folder. Trained models stay in `data_dir`.
    """
    from parley.domain_documents import add_documents  # noqa: PLC0415  # a client may lack these dependencies
    from parley.embedded.ports import free_port  # noqa: PLC0415
    from parley.stack import StackPlan, note_models, run_stack  # noqa: PLC0415

    _remove_leftovers()
    note_models(say)
    folder = None if lasting else Path(tempfile.mkdtemp(prefix=_PRIVATE_PREFIX))
    plan = StackPlan(
        data_dir=folder or data_dir.resolve(),
        domain=domain or resolve_domain(DEFAULT_DOMAIN),
        host="127.0.0.1",
        port=free_port(),
        private=True,
        lasting=lasting,
        database_url=os.environ.get("DATABASE_URL"),
        redis_url=os.environ.get("REDIS_URL"),
        trained=trained_folder(data_dir.resolve()),
    )
    try:
        with run_stack(plan, say) as running:
            with open_client(running.url) as client:
                add_documents(client, plan.domain, say)
            say("Ready.")
            yield running.url
    except ProcessFailed:
        raise  # keep the logs that the error names until the next private run
    except BaseException:
        _remove(folder)
        raise
    _remove(folder)


def _remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder)


def _remove_leftovers() -> None:
    from parley.processes import end_leftovers  # noqa: PLC0415

    for folder in Path(tempfile.gettempdir()).glob(f"{_PRIVATE_PREFIX}*"):
        if not (folder / "lock").exists() or folder.stat().st_uid != os.geteuid():
            continue  # the folder is being created, or belongs to another user
        with contextlib.suppress(FolderInUse), hold(folder):
            end_leftovers(folder / "run")
            shutil.rmtree(folder, ignore_errors=True)
