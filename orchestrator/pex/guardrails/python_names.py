"""The names that guarded Python may and may not use: data, no logic."""

_SAFE_BUILTINS = """
abs all any ascii bin bool bytes chr complex dict divmod enumerate filter float format frozenset hash hex
    int isinstance issubclass iter len list map max min next oct ord pow range repr reversed round set slice
    sorted str sum tuple zip callable
    Exception ArithmeticError AssertionError AttributeError IndexError KeyError LookupError NameError
    NotImplementedError OverflowError RuntimeError StopIteration TypeError ValueError ZeroDivisionError
    """
SAFE_BUILTINS = frozenset(_SAFE_BUILTINS.split())

_NEVER_IMPORTED = """
asyncio atexit ast builtins bdb cffi code codecs codeop concurrent contextvars copyreg ctypes cProfile dbm dis
    distutils doctest ensurepip fcntl faulthandler fileinput ftplib gc getpass glob gzip http imaplib imp
    importlib inspect io linecache logging lzma marshal mmap multiprocessing nntplib nt operator os pathlib
    pdb pickle pickletools pkgutil platform poplib posix posixpath pprint profile pty pwd py_compile pydoc
    queue readline resource runpy sched select selectors shelve shutil signal site smtplib socket
    socketserver sqlite3 ssl string subprocess symtable sys sysconfig syslog tarfile telnetlib tempfile
    termios test threading timeit tkinter trace traceback tracemalloc tty types typing unittest urllib uuid
    venv warnings weakref webbrowser wsgiref xml xmlrpc zipapp zipfile zipimport zlib bz2
    """
NEVER_IMPORTED = frozenset(_NEVER_IMPORTED.split())
"""Modules that no configuration can allow: they read files, start processes, or lead to those that do."""

_FORBIDDEN_ATTRIBUTES = """
ag_await ag_code ag_frame ag_running cr_await cr_code cr_frame cr_origin cr_running f_back f_builtins
    f_code f_globals f_lasti f_lineno f_locals f_trace format_map func_code func_globals gi_code gi_frame
    gi_running gi_yieldfrom mro tb_frame tb_lasti tb_lineno tb_next with_traceback
    """
FORBIDDEN_ATTRIBUTES = frozenset(_FORBIDDEN_ATTRIBUTES.split())
"""Ways from a harmless object to frames, code, classes and formatted attribute look-ups."""

NAMED_TUPLE_API = frozenset({"_asdict", "_fields", "_make", "_replace"})

REPAIRS = {
    "print": "Return the value instead of printing it.",
    "open": "Files cannot be read or written; take the data as an argument.",
    "input": "Nobody can be asked; take the value as an argument.",
    "eval": "Write the expression itself.",
    "exec": "Write the code itself.",
    "compile": "Write the code itself.",
    "getattr": "Write the attribute with a dot, or use a dict.",
    "setattr": "Use a dict.",
    "type": "Use isinstance().",
}
