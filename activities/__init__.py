"""Everything with side effects that a session's workflow asks for: the store, the model, the
tools.
"""

from perdure.activities.forks import ForkActivities
from perdure.activities.loops import LoopActivities
from perdure.activities.model_calls import ModelActivities
from perdure.activities.publishing import PublishActivities
from perdure.activities.storage import StoreActivities
from perdure.activities.sub_agents import SubAgentActivities
from perdure.activities.summaries import SummaryActivities
from perdure.activities.tool_calls import ToolActivities
from perdure.activities.tool_lists import ToolListActivities

__all__ = [
    "ForkActivities",
    "LoopActivities",
    "ModelActivities",
    "PublishActivities",
    "StoreActivities",
    "SubAgentActivities",
    "SummaryActivities",
    "ToolActivities",
    "ToolListActivities",
]
