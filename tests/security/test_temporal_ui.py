"""With keys, what the Temporal UI shows of a session is encrypted on its way there; what it finds
sessions by is not, and holds nothing that was said.
"""

from __future__ import annotations

from pathlib import Path

from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.api.workflowservice.v1 import QueryWorkflowRequest

from perdure import Agent, names
from perdure.encryption import Keys
from perdure.models.scripted import ScriptedModel, call
from perdure.session_id import workflow_id
from perdure.stores import FileStore
from tests.engine.agents import add
from tests.security.conftest import Connecting, Serving


async def test_details_and_summaries_are_encrypted_under_keys(
    connecting: Connecting, secured: Serving, keys: Keys, tmp_path: Path
) -> None:
    model = ScriptedModel(call("add", a=1, b=2), "a hush in reply")
    agent = Agent("quiet", model=model, tools=[add])
    client = connecting(keys)
    async with secured(client, FileStore(tmp_path), agent) as sessions:
        session = await sessions.open("sealed-ui", agent="quiet")
        await (await session.run("a hush"))
        handle = client.get_workflow_handle(workflow_id("sealed-ui"))
        told = await handle.query(names.METADATA, result_type=WorkflowMetadata)
        request = QueryWorkflowRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=handle.id),
            query=WorkflowQuery(query_type=names.METADATA),
        )
        raw = await client.workflow_service.query_workflow(request)
        summaries = [
            event.user_metadata.summary
            async for event in handle.fetch_history_events()
            if event.HasField("user_metadata")
        ]
        described = await handle.describe()

    assert "a hush in reply" in told.current_details
    assert is_encrypted(raw.query_result.payloads[0])
    assert len(summaries) > 5
    assert all(map(is_encrypted, summaries))
    assert await described.static_summary() == "perdure session sealed-ui"
    assert "hush" not in repr(described.typed_search_attributes)


def is_encrypted(payload: Payload) -> bool:
    return payload.metadata["encoding"] == b"binary/encrypted"
