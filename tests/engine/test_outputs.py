"""Structured output: the answer of a run is an object, checked by the worker."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from perdure import (
    Agent,
    CommandError,
    MaxTurnsError,
    Message,
    OutputError,
)
from perdure.models.protocol import ModelRequest, OnDelta
from perdure.models.scripted import ScriptedModel, call
from perdure.output_type import OutputType, json_text, output_type_loaded_here
from tests.engine.agents import add, scripted, shape, texts, watched
from tests.engine.conftest import Serving


class Invoice(BaseModel):
    number: int
    total: float

    @field_validator("total")
    @classmethod
    def _owed(cls, value: float) -> float:
        if value < 0:
            raise ValueError("nobody is owed less than nothing")
        return value


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Address(TypedDict):
    city: str


GOOD = '{"number": 7, "total": 12.5}'
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 2}},
    "required": ["city"],
}


class Asked(ScriptedModel):
    """A scripted model that keeps the schemas that it was given."""

    def __init__(self, *items: Any, **options: Any) -> None:
        super().__init__(*items, **options)
        self.schemas: list[Any] = []

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        self.schemas.append(request.output_schema)
        return await super().respond(request, on_delta)


async def test_the_answer_is_an_object(serving: Serving) -> None:
    """The model is told the schema; the log has the answer as an ordinary message."""
    model = Asked(GOOD, "You're welcome.")
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("invoice", agent="agent")
        run = await session.run("The invoice, please.", output=Invoice)
        assert await run.output() == Invoice(number=7, total=12.5)
        assert [message.text for message in await run] == [GOOD]
        await (await session.run("Thank you."))
    assert model.schemas == [Invoice.model_json_schema(), None]


@pytest.mark.parametrize(
    "output, answer, expected",
    [
        (Point, '{"x": 3}', Point(3)),
        (Address, '{"city": "Lyon"}', {"city": "Lyon"}),
        (SCHEMA, '```json\n{"city": "Lyon"}\n```', {"city": "Lyon"}),
    ],
)
async def test_dataclasses_typed_dicts_and_schemas_do_as_well(
    serving: Serving, output: Any, answer: str, expected: object
) -> None:
    async with serving(scripted(answer)) as sessions:
        session = await sessions.open(f"of-{answer[:9]!r}", agent="agent")
        run = await session.run("go", output=output)
        assert await run.output() == expected
        assert await session.attach(run.id, output=output).output() == expected


async def test_an_answer_that_does_not_fit_goes_back_to_the_model(serving: Serving) -> None:
    """With what is wrong, as a meta message; each answer is a turn, and all of it is stored."""
    model = ScriptedModel("Here you are!", '{"number": "x", "total": -1}', GOOD)
    async with serving(Agent("agent", model=model)) as sessions:
        session = await sessions.open("mended", agent="agent")
        run = await session.run("The invoice.", output=Invoice)
        events, error = await watched(run)
        again, _ = await watched(session.attach(run.id))
        assert (error, await run.output()) == (None, Invoice(number=7, total=12.5))
        log = await session.entries()
        assert [entry.id for event in events for entry in event.entries] == [e.id for e in log]
        assert [getattr(entry, "meta", None) for entry in log] == [
            *(False, False, True, False, True, False)
        ]
        assert len(texts(await session.transcript())) == 4
        assert shape(events) == shape(again)
        assert (await session.status()).turns == 3
    assert "not the JSON that was asked for:" in model.requests[1][-1].text
    faults = model.requests[2][-1].text
    assert "- number: Input should be a valid integer" in faults
    assert "- total: Value error, nobody is owed less than nothing (got -1)" in faults


async def test_in_the_end_the_run_fails_and_says_what_is_wrong(serving: Serving) -> None:
    """Two more tries unless the run says; then OutputError, with all answers stored."""
    async with serving(scripted(*["no"] * 4, GOOD)) as sessions:
        session = await sessions.open("in-the-end", agent="agent")
        with pytest.raises(OutputError, match="none of 3 answers"):
            await (await session.run("The invoice.", output=Invoice)).output()
        assert sum(text == "no" for text in texts(await session.entries())) == 3
        with pytest.raises(OutputError, match="the answer is not the JSON"):
            await (await session.run("At once.", output=Invoice, output_retries=0))
        run = await session.run("Again.", output=Invoice)
        assert (await run.output()).number == 7


async def test_turns_count(serving: Serving) -> None:
    async with serving(scripted("no", "no", "no", max_turns=2)) as sessions:
        session = await sessions.open("turns-count", agent="agent")
        with pytest.raises(MaxTurnsError):
            await (await session.run("The invoice.", output=Invoice, output_retries=9))


async def test_with_tools_streamed_and_through_renewals(serving: Serving) -> None:
    """Only an answer is checked, not what is said along with a call."""
    model = Asked([call("add", a=3, b=4)], "seven?", GOOD, stream=True)
    agent = Agent("agent", model=model, tools=[add])
    async with serving(agent, max_history_events=1) as sessions:
        session = await sessions.open("renewed-output", agent="agent")
        run = await session.run("go", output=Invoice, stream=True)
        events, error = await watched(run)
        assert error is None
        said = [event.delta.text for event in events if event.delta is not None]
        assert set(said) <= {'{"a": 3, "b": 4}', "seven?", GOOD}
        assert await run.output() == Invoice(number=7, total=12.5)
        handle = sessions.client.get_workflow_handle("session:renewed-output")
        described = (await handle.describe()).raw_description.workflow_execution_info
        assert described.first_run_id != described.execution.run_id
    assert model.schemas == [Invoice.model_json_schema()] * 3


async def test_by_signal_from_bare_json(serving: Serving) -> None:
    async with serving(scripted("Lyon", '{"city": "Lyon"}')) as sessions:
        session = await sessions.open("bare-output", agent="agent")
        handle = sessions.client.get_workflow_handle("session:bare-output")
        await handle.signal("run", {"command_id": "by-hand", "entries": "Where?", "output": SCHEMA})
        assert await session.attach("by-hand", output=SCHEMA).output() == {"city": "Lyon"}


async def test_a_run_that_wants_an_output_joins_no_other(serving: Serving) -> None:
    """It waits its turn, so that the answer is its own."""
    async with serving(scripted("one", GOOD)) as sessions:
        session = await sessions.open("not-joined", agent="agent")
        first = await session.run("go")
        second = await session.run("The invoice.", output=Invoice, when_busy="steer")
        assert [message.text for message in await first] == ["one"]
        assert (await second.output()).number == 7


BAD_SCHEMAS: list[tuple[dict[str, Any], str]] = [
    ({"type": "objekt"}, "not a JSON schema"),
    ({"$ref": "http://127.0.0.1:9/schema.json"}, "refers to 'http://127.0.0.1:9/schema.json'"),
]


@pytest.mark.parametrize("schema, reason", BAD_SCHEMAS)
async def test_a_schema_that_cannot_be_used_fails_the_run_before_anything_is_stored(
    serving: Serving, schema: dict[str, Any], reason: str
) -> None:
    """6.2: nothing is fetched, either."""
    async with serving(scripted(GOOD)) as sessions:
        session = await sessions.open(f"unusable {reason}", agent="agent")
        with pytest.raises(OutputError, match=reason):
            await (await session.run("go", output=schema)).output()
        assert await session.entries() == []


@pytest.mark.parametrize(
    "schema, reason",
    [({"$ref": "#/$defs/none"}, "names '/.defs/none'"), ({"$ref": "#"}, "in circles")],
)
async def test_a_schema_that_leads_nowhere_fails_the_run(
    serving: Serving, schema: dict[str, Any], reason: str
) -> None:
    async with serving(scripted(GOOD)) as sessions:
        session = await sessions.open(f"nowhere {reason}", agent="agent")
        with pytest.raises(OutputError, match=reason):
            await (await session.run("go", output=schema)).output()


async def test_a_worker_that_can_check_nothing_says_what_it_lacks(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """6.2: neither the class nor the package: nothing is stored."""
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    async with serving(scripted(GOOD)) as sessions:
        session = await sessions.open("can-check-nothing", agent="agent")
        with pytest.raises(OutputError, match=r"pip install 'perdure\[output\]'"):
            await (await session.run("go", output=SCHEMA)).output()
        assert await session.entries() == []
        assert (await (await session.run("go", output=Invoice)).output()).number == 7


@pytest.mark.parametrize("output", [int, list[int], "Invoice", object])
async def test_what_cannot_be_an_output_is_refused_by_the_client(
    serving: Serving, output: Any
) -> None:
    async with serving(scripted(GOOD)) as sessions:
        session = await sessions.open(f"refused-{output}", agent="agent")
        with pytest.raises(OutputError, match="cannot be an output"):
            await session.run("go", output=output)


async def test_too_large_a_schema_and_too_many_retries_are_refused(serving: Serving) -> None:
    async with serving(scripted(GOOD)) as sessions:
        session = await sessions.open("too-large-a-schema", agent="agent")
        with pytest.raises(CommandError, match="50,000"):
            await session.run("go", output={"description": "x" * 50_000})
        with pytest.raises(CommandError, match="retries"):
            await session.run("go", output=Invoice, output_retries=-1)


def test_a_class_is_found_only_where_it_is_loaded_and_the_same() -> None:
    """No module is imported by name, nothing but a class with fields is taken, and one that has
    changed since is not used.
    """
    schema = Invoice.model_json_schema()
    assert output_type_loaded_here(f"{__name__}:Invoice", schema) is not None
    assert "antigravity" not in sys.modules
    own = f"{__name__}:"
    for path in ("antigravity:Invoice", f"{own}json.dumps", f"{own}nobody", "os:system", ""):
        assert output_type_loaded_here(path, schema) is None
    assert output_type_loaded_here(f"{__name__}:Invoice", schema | {"title": "Old"}) is None
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    "answer, found",
    [
        (f" {GOOD}\n", GOOD),
        (f"```json\n{GOOD}\n```", GOOD),
        (f"Here:\n```\n{GOOD}\n```\nAnything else?", GOOD),
        ('{"code": "```\\nx\\n```"}', '{"code": "```\\nx\\n```"}'),
        ("no", "no"),
    ],
)
def test_json_in_an_answer_may_be_fenced(answer: str, found: str) -> None:
    assert json_text(answer) == found


def test_an_output_reads_what_json_can_say() -> None:
    assert OutputType(Invoice).read(json.dumps({"number": 1, "total": 2})).total == 2.0
