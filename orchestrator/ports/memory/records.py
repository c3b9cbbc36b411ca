"""Named collections of JSON documents: where a domain's services keep what they own.

The port is public to domains, which may not see this layer; so it is declared with their API.
"""

from orchestrator.domain.services import Records

__all__ = ["Records"]
