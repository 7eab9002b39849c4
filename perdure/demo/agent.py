"""The demo's agent, as its workers serve it."""

from __future__ import annotations

from perdure.agent import Agent
from perdure.demo.folder import Folder
from perdure.demo.journal import Journal
from perdure.demo.noted_model import NotedModel
from perdure.demo.project import Project
from perdure.demo.questions import AGENT, INSTRUCTIONS
from perdure.demo.script import scripted_model
from perdure.demo.tools import Desk
from perdure.models import resolve_model

SCRIPT = "script"
"""What is written in place of a model's spec for the scripted model."""


def demo_agent(folder: Folder, *, model: str, worker: int) -> Agent:
    """The agent of one worker. Raises ModelSpecError when the model cannot be made."""
    journal = Journal(folder.journal)
    chosen = scripted_model() if model == SCRIPT else resolve_model(model)
    assert chosen is not None
    desk = Desk(Project.here(), folder.mailbox, journal, worker)
    return Agent(
        AGENT,
        model=NotedModel(chosen, journal, worker),
        instructions=INSTRUCTIONS,
        tools=desk.tools(),
        max_turns=20,
    )
