"""Where something belongs in a trace, as W3C Trace Context writes it, and spans whose IDs follow
from what they are about.

What a session does is spread over workers, and each of its steps may be done twice. So a run's
span has an ID that whoever knows the run can compute; its parts name it as their parent before it
has ended, and one that is told of twice is the same span.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Self

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span, by its IDs (hexadecimal). The lowest bit of the flags says that it is recorded."""

    trace_id: str
    span_id: str
    flags: str = "01"

    @classmethod
    def parse(cls, traceparent: object) -> Self | None:
        """Read a `traceparent`; None for what is none."""
        if not isinstance(traceparent, str):
            return None
        found = _TRACEPARENT.fullmatch(traceparent)
        if found is None:
            return None
        version, trace_id, span_id, flags, rest = found.groups()
        if (
            version == "ff"
            or (version == "00" and rest)
            or not (int(trace_id, 16) and int(span_id, 16))
        ):
            return None
        return cls(trace_id, span_id, flags)

    @classmethod
    def root(cls, *about: str) -> Self:
        """The first span of a trace of its own, which is about this."""
        digest = _digest(about)
        return cls(trace_id=digest[:32], span_id=digest[32:48])

    def child(self, *about: str) -> Self:
        """A span of the same trace, which is about this."""
        return type(self)(self.trace_id, _digest((self.span_id, *about))[:16], self.flags)

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def _digest(about: tuple[str, ...]) -> str:
    text = "\0".join(about)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
