"""Sessions that were begun by an earlier version go on under this one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from perdure import PerdurePlugin
from perdure.stores import MemoryStore

HISTORIES = sorted((Path(__file__).parent.parent / "histories").glob("*/*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_a_recorded_history_replays(path: Path) -> None:
    replayer = Replayer(workflows=[], plugins=[PerdurePlugin(agents=[], store=MemoryStore())])
    await replayer.replay_workflow(WorkflowHistory.from_json(path.stem, path.read_text()))


async def test_a_history_that_the_workflow_would_not_have_made_is_noticed() -> None:
    """The check above can fail: here the model call of a plain turn is taken out of the record."""
    path = next(path for path in HISTORIES if path.stem == "plain-turns-1")
    record = json.loads(path.read_text())
    for event in record["events"]:
        attributes = event.get("activityTaskScheduledEventAttributes", {})
        if attributes.get("activityType", {}).get("name") == "perdure.call_model":
            attributes["activityType"]["name"] = "perdure.run_tool"
    replayer = Replayer(workflows=[], plugins=[PerdurePlugin(agents=[], store=MemoryStore())])
    with pytest.raises(NondeterminismError):
        await replayer.replay_workflow(WorkflowHistory.from_json("changed", json.dumps(record)))


def test_there_are_recorded_histories() -> None:
    assert len(HISTORIES) >= 7
