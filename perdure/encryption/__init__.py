"""Encryption under keys that have names: of what passes through Temporal, and of a store's bodies.

`perdure.encryption.payloads` has Temporal's side of it, `perdure.stores.encrypted` the store's.
"""

from __future__ import annotations

from perdure.encryption.keys import Keys

__all__ = ["Keys"]
