"""Translate psycopg's and SQLAlchemy's errors to Parley's errors."""

import re
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
import psycopg_pool
import sqlalchemy.exc

from orchestrator.errors import InvalidInput, NotFound, ParleyError, Unavailable

NO_ROLE = (
    "This database user can't use the role parley_session_flows, so session flows, forgetting and repairs can't run; "
    "`parley doctor` shows the fix."
)
_KINDS = {
    "lanes": "session",
    "sessions": "session",
    "turns": "turn",
    "documents": "document",
    "internal_runs": "run",
}


class Translated:
    """A context manager that translates database errors. Errors without a translation pass unchanged.

    It is a class instead of a generator for speed, because every statement passes through it.
    """

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        ours = None if error is None else _translate(error)
        if ours is not None:
            raise ours from error


def _translate(error: BaseException) -> ParleyError | None:
    match error:
        case psycopg.OperationalError() | psycopg.InterfaceError() | psycopg_pool.PoolClosed():
            return Unavailable("The database is not responding; try again later.")
        case (
            psycopg.errors.ReadOnlySqlTransaction()
            | sqlalchemy.exc.InternalError(orig=psycopg.errors.ReadOnlySqlTransaction())
        ):
            return Unavailable("The database is read-only at the moment; try again later.")
        case psycopg.DataError() | UnicodeEncodeError() | sqlalchemy.exc.DataError():
            return InvalidInput(
                "The input contains a character or number that can't be stored; remove it.", field="text"
            )
        case psycopg.errors.ForeignKeyViolation():
            return _gone(error)
        case sqlalchemy.exc.IntegrityError(orig=psycopg.errors.ForeignKeyViolation() as violation):
            return _gone(violation)
        case sqlalchemy.exc.TimeoutError():
            return Unavailable("All database connections are in use; try again later.")
        case sqlalchemy.exc.OperationalError() | sqlalchemy.exc.InterfaceError():
            return Unavailable("The database is not responding; try again later.")
        case _:
            return None


@contextmanager
def reached() -> Generator[None]:
    """Raise Unavailable if the block of a command can't connect to the database."""
    try:
        yield
    except psycopg.OperationalError as error:
        raise Unavailable("The database is not responding; check DATABASE_URL.") from error


@contextmanager
def role_taken() -> Generator[None]:
    """Raise Unavailable with instructions if the block fails because the role is missing or not permitted."""
    refused = (psycopg.errors.InvalidParameterValue, psycopg.errors.InsufficientPrivilege)
    try:
        yield
    except (*refused, sqlalchemy.exc.DBAPIError) as error:
        if isinstance(getattr(error, "orig", error), refused):
            raise Unavailable(NO_ROLE) from error
        raise


def _gone(violation: psycopg.errors.ForeignKeyViolation) -> NotFound:
    """Return a NotFound error for a row whose parent doesn't exist or was just deleted."""
    detail = violation.diag.message_detail or ""
    named = re.search(r'=\((?:.*, )?(.+)\) is not present in table "(\w+)"', detail)
    return (
        NotFound(_KINDS.get(named[2], named[2]), named[1])
        if named
        else NotFound("parent row of table", violation.diag.table_name or "unknown")
    )
