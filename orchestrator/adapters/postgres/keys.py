"""API keys in PostgreSQL.

The gateway cannot read the keys table; it can only look up single keys through a database function.
"""

from datetime import datetime

from sqlalchemy import desc, func, insert, select, text, update

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.tables import NOW, api_keys, record_of, required
from orchestrator.turns.access import ApiKey, Scope, digest, fits, make_key_text, read_key, show_key
from orchestrator.types import TenantId, UserId

_FIND = text("SELECT * FROM parley_find_key(:key_id)")


class PostgresKeys:
    """A store of API keys that keeps only hashes of the secrets. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self,
        tenant_id: TenantId,
        name: str,
        scopes: frozenset[Scope],
        *,
        user_id: UserId | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key. Return its record and its text, which contains the secret and can't be retrieved later.

        `user_id`: the only user for whom the key can act. Default: any user. `expires_at`: when the key
        expires. Default: never.
        """
        text = make_key_text()
        making = (
            insert(api_keys)
            .values(
                key_id=text.key_id,
                tenant_id=tenant_id,
                name=name,
                scopes=sorted(scopes),
                user_id=user_id,
                digest=digest(text.secret),
                expires_at=expires_at,
            )
            .returning(api_keys)
        )
        async with self._database.transaction() as connection:
            return record_of(ApiKey, (await connection.execute(making)).one()), show_key(text)

    async def list(self, tenant_id: TenantId | None = None) -> list[ApiKey]:
        """Return a tenant's keys, newest first, including revoked and expired keys. Default: all tenants' keys."""
        query = select(api_keys).order_by(desc(api_keys.c.created_at))
        if tenant_id is not None:
            query = query.where(api_keys.c.tenant_id == tenant_id)
        return [record_of(ApiKey, row) for row in await self._database.read_all(query)]

    async def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key, and return its record. Raises NotFound."""
        revoking = (
            update(api_keys)
            .where(api_keys.c.key_id == key_id)
            .values(revoked_at=func.coalesce(api_keys.c.revoked_at, NOW))
            .returning(api_keys)
        )
        return record_of(ApiKey, required(await self._database.read_one(revoking), "key", key_id))

    async def find(self, text: str) -> ApiKey | None:
        given = read_key(text)
        if given is None:
            return None
        row = await self._database.read_one(_FIND, {"key_id": given.key_id})
        return record_of(ApiKey, row) if row is not None and fits(given.secret, row.digest) else None

    async def is_valid(self, key_id: str) -> bool:
        return await self._database.read_one(_FIND, {"key_id": key_id}) is not None
