"""Spans, of what is under way and of what is over, with IDs that others can compute."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar

from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
    set_span_in_context,
    use_span,
)
from temporalio.exceptions import ApplicationError

from perdure.telemetry.conventions import ERROR, Attributes
from perdure.trace_context import TraceContext

_chosen: ContextVar[TraceContext | None] = ContextVar("chosen", default=None)


class Spans:
    """Makes spans with a provider's tracer. Exceptions are told by their type's name only, since
    their text may quote what is nobody's business.
    """

    def __init__(self, provider: TracerProvider, version: str) -> None:
        self._tracer: Tracer = provider.get_tracer("perdure", version)
        # A tracer is made anew at each call, so nobody else's IDs are touched.
        others = getattr(self._tracer, "id_generator", None)
        if others is not None:
            self._tracer.id_generator = _ChosenIds(others)  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def span(
        self,
        name: str,
        attributes: Attributes,
        *,
        parent: TraceContext | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Iterator[Span]:
        """The span of what the block does, and whether it fails. Without a parent it is part of
        whatever is under way.
        """
        span = self._tracer.start_span(
            name,
            context=None if parent is None else _context_of(parent),
            kind=kind,
            attributes=attributes,
        )
        with use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield span
            except BaseException as error:
                note_error(span, kind_of(error))
                raise

    def tell(
        self,
        name: str,
        own: TraceContext,
        attributes: Attributes,
        *,
        began: float,
        ended: float,
        parent: TraceContext | None,
        links: Sequence[TraceContext] = (),
        error: str = "",
    ) -> None:
        """The span of something that is over (seconds since 1970)."""
        span = self._start(name, own, attributes, began, parent, links)
        if error:
            note_error(span, error)
        span.end(end_time=max(_ns(began), _ns(ended)))

    @staticmethod
    @contextlib.contextmanager
    def within(own: TraceContext) -> Iterator[None]:
        """What the block tells is about this span, which may be over."""
        with use_span(NonRecordingSpan(_span_context(own))):
            yield

    def begin_trace(self, name: str, own: TraceContext) -> TraceContext:
        """The root that a trace will have, with the sampler's word on whether it is recorded."""
        span = self._start(name, own, {}, None, None, ())
        flags = span.get_span_context().trace_flags
        return TraceContext(own.trace_id, own.span_id, f"{int(flags):02x}")

    def _start(
        self,
        name: str,
        own: TraceContext,
        attributes: Attributes,
        began: float | None,
        parent: TraceContext | None,
        links: Sequence[TraceContext],
    ) -> Span:
        token = _chosen.set(own)
        try:
            return self._tracer.start_span(
                name,
                context=Context() if parent is None else _context_of(parent),
                attributes=attributes,
                links=[Link(_span_context(link)) for link in links],
                start_time=None if began is None else _ns(began),
            )
        finally:
            _chosen.reset(token)


def note_error(span: Span, kind: str) -> None:
    """What the span is about failed, with an error of this kind."""
    span.set_attribute(ERROR, kind)
    span.set_status(StatusCode.ERROR)


def kind_of(error: BaseException) -> str:
    """What kind of error it is, in a word."""
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__


def context_of(span: Span) -> TraceContext | None:
    """Where the span is; None for one that belongs to no trace."""
    found = span.get_span_context()
    if not found.is_valid:
        return None
    return TraceContext(
        f"{found.trace_id:032x}", f"{found.span_id:016x}", f"{int(found.trace_flags):02x}"
    )


class _ChosenIds(IdGenerator):
    def __init__(self, others: IdGenerator) -> None:
        self._others = others

    def generate_span_id(self) -> int:
        chosen = _chosen.get()
        return self._others.generate_span_id() if chosen is None else int(chosen.span_id, 16)

    def generate_trace_id(self) -> int:
        chosen = _chosen.get()
        return self._others.generate_trace_id() if chosen is None else int(chosen.trace_id, 16)


def _context_of(parent: TraceContext) -> Context:
    return set_span_in_context(NonRecordingSpan(_span_context(parent)), Context())


def _span_context(context: TraceContext) -> SpanContext:
    return SpanContext(
        trace_id=int(context.trace_id, 16),
        span_id=int(context.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(context.flags, 16)),
    )


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
