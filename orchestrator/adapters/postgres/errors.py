"""Translates what the database's drivers raise into errors of our family, at the edge that meets it."""

import re
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
import psycopg_pool
import sqlalchemy.exc

from orchestrator.errors import InvalidInput, NotFound, Unavailable

NO_ROLE = (
    "The database has no role parley_session_flows that this user may act as, so session flows, forgetting and repair "
    "cannot run; `parley doctor` says what to do."
)
_KINDS = {
    "lanes": "session",
    "sessions": "session",
    "turns": "turn",
    "documents": "document",
    "internal_runs": "run",
}


@contextmanager
def translated() -> Generator[None]:
    """Turn what the drivers raise into errors of our family."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, psycopg_pool.PoolClosed) as error:
        raise Unavailable("The database does not answer; try again later.") from error
    except (psycopg.DataError, UnicodeEncodeError) as error:
        raise InvalidInput("The input holds characters that cannot be stored.", field="text") from error
    except psycopg.errors.ForeignKeyViolation as error:
        raise _gone(error) from error
    except sqlalchemy.exc.IntegrityError as error:
        if isinstance(error.orig, psycopg.errors.ForeignKeyViolation):
            raise _gone(error.orig) from error
        raise
    except sqlalchemy.exc.TimeoutError as error:
        raise Unavailable("Every database connection is in use; try again later.") from error
    except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError) as error:
        raise Unavailable("The database does not answer; try again later.") from error
    except sqlalchemy.exc.DataError as error:
        raise InvalidInput("The input holds characters that cannot be stored.", field="text") from error


@contextmanager
def role_taken() -> Generator[None]:
    """Say what is to be done when the server has no such role, or this user may not act as it."""
    refused = (psycopg.errors.InvalidParameterValue, psycopg.errors.InsufficientPrivilege)
    try:
        yield
    except (*refused, sqlalchemy.exc.DBAPIError) as error:
        if isinstance(getattr(error, "orig", error), refused):
            raise Unavailable(NO_ROLE) from error
        raise


def _gone(violation: psycopg.errors.ForeignKeyViolation) -> NotFound:
    """What a new row belongs to is not there, or no more: somebody may have deleted it at this moment."""
    detail = violation.diag.message_detail or ""
    named = re.search(r'=\((?:.*, )?(.+)\) is not present in table "(\w+)"', detail)
    return NotFound(_KINDS.get(named[2], named[2]), named[1]) if named else NotFound("owner", "of this")
