"""The fixtures of the engine's tests: a real server, and a worker on it."""

from tests.engine.conftest import serving, store

__all__ = ["serving", "store"]
