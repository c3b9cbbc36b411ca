"""Flows in progress: the class hierarchy BaseFlow → one parent per family → one class per dact (FS-1)."""


class BaseFlow:
    pass
