"""`parley domain`: check a domain folder, scaffold a new one."""

from __future__ import annotations

import typer

app = typer.Typer(help="Work on domain folders.", no_args_is_help=True)
