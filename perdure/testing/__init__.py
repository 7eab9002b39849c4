"""What an application tests itself with: a model that follows a script, and the contract of a
store, as a kit.
"""

from __future__ import annotations

from perdure.models.scripted import ScriptedModel, call
from perdure.testing.store_contract import BrokenPromise, StoreContractError, check_store

__all__ = ["BrokenPromise", "ScriptedModel", "StoreContractError", "call", "check_store"]
