"""A domain's configuration: sections over shared defaults, validated, frozen (CO-5)."""


class DomainConfig:
    pass
