"""Redis access control lists: one user for each kind of process (RT-22), in Redis 7 syntax.

`users.acl` lists the users, with ``@name@`` as each password. No user can configure, dump, flush or monitor the server:

- ``parley-worker``: workers and beat. They may push to any list, because callbacks go to senders' queues of any name.
- ``parley-gateway``: wakes workers, but cannot read the messages that backends submit.
- ``parley-sender``: backends that use Celery. They submit, read results, send groups and chords, and revoke.
- ``parley-flower``: reads worker events and queue lengths, but no messages.
- ``parley-scaler``: autoscalers. They can also write their keys, because Redis treats KEDA's script as a write.
- ``parley-probe``: health probes.
"""

import hashlib
import re
from collections.abc import Mapping
from importlib import resources
from typing import Final

_PASSWORD: Final = re.compile(r">@([\w-]+)@")
_USERS: Final = (resources.files("orchestrator.adapters.redis") / "users.acl").read_text("utf-8")

USERS: Final = tuple(_PASSWORD.findall(_USERS))
"""The names of the users, except for the default user, which is disabled."""


def write_acl_file(passwords: Mapping[str, str]) -> str:
    """Return the content of an ACL file with password digests. `passwords`: passwords by user name."""
    return _PASSWORD.sub(lambda user: f"#{hashlib.sha256(passwords[user[1]].encode()).hexdigest()}", _USERS)
