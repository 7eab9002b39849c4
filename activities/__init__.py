"""Everything with side effects that a session's workflow asks for: the store, the model, the
tools.
"""

from perdure.activities.model_calls import ModelActivities
from perdure.activities.storage import StoreActivities
from perdure.activities.tool_calls import ToolActivities

__all__ = ["ModelActivities", "StoreActivities", "ToolActivities"]
