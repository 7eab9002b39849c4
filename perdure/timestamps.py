"""Instants as the log writes them: RFC 3339, exact to the nanosecond, in the writer's own zone.

Siblings in the tree are ordered by the full nanosecond instant, which a `datetime` (microseconds)
cannot hold, and a time that was read is written back letter for letter.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache, total_ordering
from typing import Any, Final, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

_GRAMMAR: Final = re.compile(
    r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_NANOSECONDS_PER_SECOND: Final = 1_000_000_000
_YEARS_PER_CYCLE: Final = 400  # the calendar repeats after 400 years
_DAYS_PER_CYCLE: Final = 146_097


@total_ordering
class Timestamp:
    """An instant with the text that names it.

    Equality and order are those of the instant, whatever the zone; `str()` is the wire text.
    """

    __slots__ = ("_nanoseconds", "_text")

    _text: str
    _nanoseconds: int | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an RFC 3339 time; `T`, upper case, and `Z` or `±hh:mm` are required.

        A comma is a decimal point, and digits after the ninth are kept in the text but do not
        count. Raises `ValueError` for anything else, a day that its month lacks included.
        """
        if not is_time(text):
            raise ValueError(
                f"{text[:60]!r} is not a time; write it like 2026-11-29T12:01:52.26Z or "
                "2026-11-29T12:01:52+05:30"
            )
        timestamp = cls.__new__(cls)
        timestamp._text = text
        timestamp._nanoseconds = None
        return timestamp

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """The instant of a `datetime` that has a zone; raises `ValueError` without one.

        An offset that is not in whole minutes cannot be written; such a time is written in UTC.
        """
        offset = moment.utcoffset()
        if offset is None:
            raise ValueError(f"{moment!r} has no time zone; give it one, such as datetime.UTC")
        if offset % timedelta(minutes=1):
            moment, offset = moment.astimezone(UTC), timedelta(0)
        fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
        return cls.parse(
            f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"
            f"T{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}{fraction}"
            f"{_zone_text(offset)}"
        )

    @property
    def nanoseconds(self) -> int:
        """Nanoseconds since the start of year 1 in UTC; negative for what lies before it."""
        if self._nanoseconds is None:
            self._nanoseconds = _nanoseconds_of(self._text)
        return self._nanoseconds

    @property
    def datetime(self) -> datetime:
        """The same instant to the microsecond, in the zone of the text.

        Years that a `datetime` does not know (0000) give the nearest one that it does.
        """
        found = _parts(self._text)
        if int(found[1]) == 0:
            return datetime.min.replace(tzinfo=UTC)
        fraction = (found[7] or "")[:6].ljust(6, "0")
        year, month, day, hour, minute, second = (int(found[part]) for part in range(1, 7))
        zone = timezone(timedelta(minutes=_offset_minutes(found)))
        return datetime(year, month, day, hour, minute, second, int(fraction), zone)

    def in_utc(self) -> Timestamp:
        """The same instant, named in UTC; itself when it is, or when no year could name it."""
        if self._text.endswith("Z"):
            return self
        seconds, nanoseconds = divmod(self.nanoseconds, _NANOSECONDS_PER_SECOND)
        days, second_of_day = divmod(seconds, 86_400)
        day = date.fromordinal(days % _DAYS_PER_CYCLE + 1)
        year = day.year + days // _DAYS_PER_CYCLE * _YEARS_PER_CYCLE
        if not 0 <= year <= 9999:
            return self
        hour, minute, second = second_of_day // 3600, second_of_day // 60 % 60, second_of_day % 60
        fraction = f".{nanoseconds:09d}".rstrip("0").rstrip(".")
        return Timestamp.parse(
            f"{year:04d}-{day.month:02d}-{day.day:02d}"
            f"T{hour:02d}:{minute:02d}:{second:02d}{fraction}Z"
        )

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Timestamp({self._text!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timestamp):
            return NotImplemented
        return self._text == other._text or self.nanoseconds == other.nanoseconds

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Timestamp):
            return NotImplemented
        return self.nanoseconds < other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return type(self).parse, (self._text,)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(
                str, return_schema=core_schema.str_schema()
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "format": "date-time"}

    @classmethod
    def _validated(cls, value: object) -> Timestamp:
        if isinstance(value, Timestamp):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, datetime):
            return cls.of(value)
        raise ValueError("a time is text like 2026-11-29T12:01:52Z, or a datetime")


def is_time(text: str) -> bool:
    """Whether the text is a time that `Timestamp.parse` reads."""
    found = _GRAMMAR.fullmatch(text)
    return found is not None and (found[3] <= "28" or _is_day(*found.group(1, 2, 3)))


def _parts(text: str) -> re.Match[str]:
    found = _GRAMMAR.fullmatch(text)
    assert found is not None  # every Timestamp was made by parse
    return found


@lru_cache  # a log is full of entries of one day
def _is_day(year: str, month: str, day: str) -> bool:
    try:
        # Year 0000 is a leap year like 0400, and `date` starts at year 1.
        date(int(year) or _YEARS_PER_CYCLE, int(month), int(day))
    except ValueError:
        return False
    return True


def _offset_minutes(found: re.Match[str]) -> int:
    if found[8] is None:
        return 0
    minutes = int(found[9]) * 60 + int(found[10])
    return -minutes if found[8] == "-" else minutes


def _nanoseconds_of(text: str) -> int:
    found = _parts(text)
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    days = date(year or _YEARS_PER_CYCLE, month, day).toordinal() - 1
    if year == 0:
        days -= _DAYS_PER_CYCLE
    minutes = int(found[4]) * 60 + int(found[5]) - _offset_minutes(found)
    seconds = days * 86_400 + minutes * 60 + int(found[6])
    return seconds * _NANOSECONDS_PER_SECOND + int((found[7] or "")[:9].ljust(9, "0"))


def _zone_text(offset: timedelta) -> str:
    if not offset:
        return "Z"
    sign = "-" if offset < timedelta(0) else "+"
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"


ZERO: Final = Timestamp.parse("0001-01-01T00:00:00Z")
"""The time of an entry that nobody stamped."""
