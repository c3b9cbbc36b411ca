"""`parley redis-acl`: an access control list for Redis, with a user per kind of process."""

from __future__ import annotations

import secrets
import sys
from typing import Annotated

import typer

from parley.commands.output import say


def redis_acl(
    template: Annotated[bool, typer.Option(help="Leave a place for each password instead.")] = False,
) -> None:
    """Print an ACL file for Redis (`aclfile`); the passwords, made afresh, go to standard error."""
    from orchestrator.adapters.redis.acl import USERS, write_acl_file, write_template  # noqa: PLC0415  # slow to import

    if template:
        sys.stdout.write(write_template())
        return
    passwords = {user.name: secrets.token_urlsafe(24) for user in USERS}
    sys.stdout.write(write_acl_file(passwords))
    for name, password in passwords.items():
        say(f"{name} {password}")
