from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from perdure.timestamps import ZERO, Timestamp


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-29T12:01:52.262772881Z",
        "2026-11-29T12:01:52Z",
        "2026-03-04T10:36:07.1234561+05:30",
        "2026-03-04T10:36:07-00:00",
        "2026-03-04T10:36:07+00:00",
        "2026-03-04T10:36:07,5Z",
        "2026-03-04T10:36:07.12345678901234Z",
        "2024-02-29T00:00:00Z",
        "0000-02-29T00:00:00+05:30",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59.999999999-23:59",
    ],
)
def test_a_time_is_written_as_it_was_read(text: str) -> None:
    assert str(Timestamp.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-29",
        "2026-11-29 12:01:52Z",
        "2026-11-29t12:01:52Z",
        "2026-11-29T12:01:52z",
        "2026-11-29T12:01:52",
        "2026-11-29T12:01:52+0530",
        "2026-11-29T12:01:52+05",
        "2026-11-29T12:01:60Z",
        "2026-11-29T12:60:00Z",
        "2026-11-29T24:00:00Z",
        "2026-11-29T12:01Z",
        "2026-11-29T12:01:52.Z",
        "2026-11-31T12:01:52Z",
        "2026-02-29T12:01:52Z",
        "2100-02-29T12:01:52Z",
        "2026-13-01T12:01:52Z",
        "2026-00-01T12:01:52Z",
        "2026-01-00T12:01:52Z",
        "2026-01-01T12:01:52+24:00",
        "2026-01-01T12:01:52Z\n",
        "٢٠٢٦-01-01T12:01:52Z",
    ],
)
def test_what_is_no_rfc_3339_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        Timestamp.parse(text)


def test_order_is_by_the_full_nanosecond_instant_whatever_the_zone() -> None:
    earlier = Timestamp.parse("2026-03-04T10:36:07.123456100+05:30")
    later = Timestamp.parse("2026-03-04T05:06:07.123456101Z")
    assert sorted([later, earlier]) == [earlier, later]
    assert later.nanoseconds - earlier.nanoseconds == 1


def test_two_names_of_one_instant_are_equal() -> None:
    here = Timestamp.parse("2026-03-04T10:36:07.1234561+05:30")
    there = Timestamp.parse("2026-03-04T05:06:07.12345610099Z")
    assert (here == there, hash(here) == hash(there)) == (True, True)


def test_digits_after_the_ninth_do_not_count() -> None:
    assert Timestamp.parse("0001-01-01T00:00:00.1234567899Z").nanoseconds == 123_456_789


def test_years_at_the_edge_of_the_calendar_have_an_order() -> None:
    year_zero = Timestamp.parse("0000-12-31T23:59:59Z")
    assert (year_zero.nanoseconds, ZERO.nanoseconds) == (-1_000_000_000, 0)
    assert Timestamp.parse("0001-01-01T00:00:00+05:30") < ZERO
    assert year_zero.datetime == datetime.min.replace(tzinfo=UTC)
    assert Timestamp.parse("0000-02-29T00:00:00Z") < Timestamp.parse("0000-03-01T00:00:00Z")


def test_a_time_from_a_datetime_drops_trailing_zeros_and_names_utc_z() -> None:
    moment = datetime(2026, 11, 29, 12, 1, 52, 260_000, tzinfo=UTC)
    india = timezone(timedelta(hours=5, minutes=30))
    assert str(Timestamp.of(moment)) == "2026-11-29T12:01:52.26Z"
    assert str(Timestamp.of(moment.replace(microsecond=0))) == "2026-11-29T12:01:52Z"
    assert str(Timestamp.of(moment.astimezone(india))) == "2026-11-29T17:31:52.26+05:30"
    west = moment.astimezone(timezone(-timedelta(hours=3)))
    assert str(Timestamp.of(west)) == "2026-11-29T09:01:52.26-03:00"


def test_a_zone_of_odd_seconds_is_written_in_utc() -> None:
    odd = timezone(timedelta(minutes=19, seconds=32))
    moment = datetime(1900, 1, 1, 12, 19, 32, tzinfo=odd)
    assert str(Timestamp.of(moment)) == "1900-01-01T12:00:00Z"


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Timestamp.of(datetime(2026, 1, 1))  # noqa: DTZ001


def test_utc_is_exact_and_keeps_what_no_year_could_name() -> None:
    here = Timestamp.parse("2026-03-04T01:06:07.123456700+05:30")
    assert str(here.in_utc()) == "2026-03-03T19:36:07.1234567Z"
    assert str(Timestamp.parse("0001-01-01T00:00:00+05:30").in_utc()) == "0000-12-31T18:30:00Z"
    last = Timestamp.parse("9999-12-31T23:59:59-01:00")
    assert last.in_utc() is last


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.timezones()))  # noqa: DTZ001
def test_a_datetime_survives(moment: datetime) -> None:
    stamped = Timestamp.of(moment)
    # In UTC: datetimes of two zones are never equal in an hour that a zone has twice.
    assert stamped.datetime.astimezone(UTC) == moment.astimezone(UTC)
    assert Timestamp.of(stamped.datetime) == stamped
    assert stamped.in_utc() == stamped


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_times_are_ordered_as_datetimes_are(one: datetime, other: datetime) -> None:
    assert (Timestamp.of(one) < Timestamp.of(other)) == (one < other)


def test_a_time_is_a_field_of_pydantic_models() -> None:
    class Stamped(BaseModel):
        at: Timestamp

    text = "2026-03-04T10:36:07.1234561+05:30"
    stamped = Stamped.model_validate({"at": text})
    assert stamped.model_dump(mode="json") == {"at": text}
    assert Stamped.model_validate_json(stamped.model_dump_json()) == stamped
    assert Stamped(at=stamped.at.datetime).at.datetime == stamped.at.datetime  # type: ignore[arg-type]
    schema = Stamped.model_json_schema()["properties"]["at"]
    assert (schema["type"], schema["format"]) == ("string", "date-time")
    with pytest.raises(ValueError, match="a time is text"):
        Stamped.model_validate({"at": 5})


def test_copies_and_pickles_are_the_same_time() -> None:
    stamped = Timestamp.parse("2026-03-04T10:36:07.1234561+05:30")
    for twin in (copy.copy(stamped), copy.deepcopy(stamped), pickle.loads(pickle.dumps(stamped))):
        assert str(twin) == str(stamped)
