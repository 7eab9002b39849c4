"""A run whose answer is an object."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from perdure.errors import OutputError
from perdure.messages import Role
from perdure.run import Run

T_co = TypeVar("T_co", covariant=True)


class Reader(Protocol[T_co]):
    """Whoever can make an object of an answer."""

    def read(self, text: str) -> T_co:
        """The object. Raises OutputError."""


class OutputRun(Run, Generic[T_co]):
    """A run whose last message is what was asked for with `output`."""

    def __init__(self, *parts: Any, reader: Reader[T_co], **options: Any) -> None:
        super().__init__(*parts, **options)
        self._reader = reader

    async def output(self) -> T_co:
        """The answer as an object, once the run is over. Raises the error with which the run
        failed: OutputError when the model did not come up with such an answer.
        """
        answers = [m for m in await self.messages() if m.role == Role.ASSISTANT]
        if not answers:
            raise OutputError("the run has no answer to read")
        return self._reader.read(answers[-1].text)
