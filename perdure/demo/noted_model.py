"""A model that notes in the journal what it is asked, and is otherwise the model that it wraps."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace

from temporalio import activity

from perdure.codec import dumps_json
from perdure.demo.journal import Event, Journal, Note
from perdure.messages import Message, Role
from perdure.models.protocol import LanguageModel, ModelRequest, OnDelta


class NotedModel:
    """The model of a worker of the demo, scripted or real."""

    def __init__(self, model: LanguageModel, journal: Journal, worker: int) -> None:
        self.name = model.name
        self._model = model
        self._journal = journal
        self._worker = worker

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """What the wrapped model says. A call whose worker is killed has no second note."""
        note = Note(
            Event.MODEL_ASKED,
            worker=self._worker,
            pid=os.getpid(),
            attempt=activity.info().attempt,
            subject=last_question(request.messages),
            call=_digest(request.messages),
            messages=len(request.messages),
        )
        self._journal.add(note)
        try:
            message = await self._model.respond(request, on_delta)
        except Exception:
            self._journal.add(replace(note, event=Event.MODEL_FAILED))
            raise
        self._journal.add(replace(note, event=Event.MODEL_ANSWERED))
        return message


def last_question(messages: Sequence[Message]) -> str:
    """What was asked last, of all that the model is sent."""
    return next(
        (message.text for message in reversed(messages) if message.role == Role.USER.value), ""
    )


def _digest(messages: Sequence[Message]) -> str:
    digest = hashlib.sha256()
    for message in messages:
        digest.update(dumps_json(message.model_dump(mode="json", by_alias=True)))
    return digest.hexdigest()[:12]
