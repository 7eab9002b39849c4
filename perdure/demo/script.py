"""The scripted model: which tools it calls is written down, what it answers comes from their
results.

It takes up where the other program's log ends, after two assistant messages.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

from temporalio import activity

from perdure.messages import Message, Role
from perdure.models.scripted import ScriptedCall, ScriptedModel, call

_THINKING = 0.4
"""Seconds before each answer: this model would otherwise be too quick to watch."""

_SLOW = 30.0
"""Seconds that the summary takes at its first attempt, in which its worker is killed."""

_ALREADY_SAID: Final = 2


def scripted_model() -> ScriptedModel:
    """The model of the demo when there is no provider to talk to."""
    return ScriptedModel(
        [
            "That search was cut off, so I run it again.",
            call("search", pattern="fsync", path="perdure"),
            call("search", pattern="O_APPEND", path="perdure/stores"),
        ],
        _who_writes,
        [
            "I list the folder and search it at the same time.",
            call("list_files", path="perdure/workflows"),
            call("search", pattern="INTERRUPTED =", path="perdure/workflows"),
            call("search", pattern="HEARTBEAT_TIMEOUT =", path="perdure/workflows"),
        ],
        _read_what_was_found,
        _what_a_crash_does,
        [
            "Both at once.",
            call("send_report", text="Session logs are appended to, flushed, never rewritten."),
            call("count_lines", path="perdure"),
        ],
        [
            "I cannot know whether the report went out. I look before I send it again.",
            call("sent_reports"),
        ],
        _what_became_of_the_report,
        _summary,
        delay=_THINKING,
        start=_ALREADY_SAID,
        name="script",
    )


def _who_writes(messages: list[Message]) -> str:
    flushed, appended = (_hits(text, "stores/") for text in _results(messages))
    return (
        f"{_place(flushed)} does: it opens logs for appending only (O_APPEND, {_place(appended)}) "
        "and flushes them (fsync). A whole line is never rewritten."
    )


def _read_what_was_found(messages: list[Message]) -> list[str | ScriptedCall]:
    listing, *hits = _results(messages)
    files = dict.fromkeys(place.split(":")[0] for text in hits for place in _hits(text))
    return [
        f"{len(listing.splitlines())} files; I read what matters.",
        *(call("read_file", path=path) for path in files or ["perdure/workflows"]),
    ]


def _what_a_crash_does(messages: list[Message]) -> str:
    source = "\n".join(_results(messages))
    seconds = re.search(r"HEARTBEAT_TIMEOUT = timedelta\(seconds=(\d+)\)", source)
    told = re.search(r'INTERRUPTED = "([^"]+)"', source)
    return (
        f"After {seconds[1] if seconds else 'some'} seconds without a heartbeat the worker counts "
        "as dead. An idempotent tool then runs again elsewhere; of any other the model reads "
        f"{told[1] if told else 'an error'!r}, and the run goes on."
    )


def _what_became_of_the_report(messages: list[Message]) -> str:
    counted = next(
        (said.text for said in reversed(messages) if re.match(r"[\d,]+ lines in", said.text)), "?"
    )
    sent = _results(messages)[-1].splitlines()[0]
    return f"The report: {sent}, before the crash, so I did not repeat it. perdure has {counted}."


async def _summary(messages: list[Message]) -> str:
    if activity.info().attempt == 1:
        await asyncio.sleep(_SLOW)
    results = sum(message.role == Role.TOOL_RESULT.value for message in messages)
    return (
        f"A conversation that another program left unfinished went on here, to {len(messages)} "
        f"messages with {results} tool results, and no worker that died took any of it along."
    )


def _results(messages: list[Message]) -> list[str]:
    """The results of the last assistant message's calls, in the order of the calls."""
    texts = {message.tool_call_id: message.text for message in messages if message.tool_call_id}
    last = next(message for message in reversed(messages) if message.role == Role.ASSISTANT.value)
    return [texts[block.id] for block in last.tool_calls]


def _hits(found: str, within: str = "") -> list[str]:
    """The places, `file:line`, that a search found."""
    places = re.findall(r"^(\S+:\d+): ", found, re.MULTILINE)
    return [place for place in places if within in place]


def _place(places: list[str]) -> str:
    return places[0] if places else "nothing here"
