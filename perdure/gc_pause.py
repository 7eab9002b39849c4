"""A pause of the garbage collector while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Within this the collector does not look at what is made: of ten thousands of entries it
    finds none to free, and takes most of the time.

    Of two threads at once, the first that is done ends the pause of both.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
