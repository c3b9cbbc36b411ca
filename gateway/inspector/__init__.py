"""The inspector: a page at `/` in which people talk to the system and watch it work.

The page is plain HTML, CSS and ES modules in `static/`; it reaches the system over the public API alone.
"""
