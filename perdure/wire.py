"""How perdure's own messages travel through Temporal.

A message is a pydantic model. It declares to the SDK that it travels as a raw payload which it
reads and writes itself, so it crosses under whatever data converter the application has chosen,
and encryption and external storage apply to it as to anything else. The JSON is written by
perdure's own layer because a conversation may hold what stricter encoders refuse: lone surrogates,
integers of any size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_jsonable_python
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.converter import TransferTypeConverter, transfer_type_convertible
from temporalio.exceptions import ApplicationError

from perdure.codec import dumps_json, loads_json
from perdure.encryption.keys import missing_key
from perdure.errors import EncryptionError

BAD_MESSAGE = "BadMessage"
"""The error type of a message that is not what its receiver takes."""

ENCRYPTED = b"binary/encrypted"
KEY_ID = "encryption-key-id"
"""What the metadata of an encrypted payload say: that it is one, and under which key."""

UNOPENED = "perdure-unopened"
"""Why a payload could not be decrypted: the codec adds it to the metadata."""


class _RawJson(TransferTypeConverter["Wire", RawValue]):
    transfer_type = RawValue

    def to_transfer_type(self, value: Wire) -> RawValue:
        return RawValue(value.to_payload())

    def from_transfer_type(self, value: RawValue, type_hint: type[Wire]) -> Wire:
        return type_hint.from_payload(value.payload)


T = TypeVar("T")


def always(default: T) -> T:
    """A field with this default that is sent also when it has it."""
    field: T = Field(default_factory=lambda: default)
    return field


@transfer_type_convertible(_RawJson)
class Wire(BaseModel):
    """One message between client, workflow and activities.

    Fields are only ever added, each with a default that means "as before", so that old and new
    processes understand each other; a field that the reader does not know is ignored. A default
    never changes, because it is not sent; `always` is for the field whose default may.
    """

    model_config = ConfigDict(extra="ignore")

    is_complete: ClassVar[bool] = False
    """Whether every field is sent, for people and programs that read the JSON as it is."""

    def to_json(self, *, sort_keys: bool = False) -> bytes:
        """The message as the bytes of one JSON object. What is as it would be anyway is left out:
        each byte is history.
        """
        return dumps_json(_plain(self), sort_keys=sort_keys)

    def to_payload(self) -> Payload:
        """The message as what every data converter makes of it."""
        return Payload(metadata={"encoding": b"json/plain"}, data=self.to_json())

    @classmethod
    def from_payload(cls, payload: Payload) -> Self:
        """Read a message; an absent one is null. Raises as `from_json` does, and EncryptionError
        for one that no codec has opened: in a workflow that waits for a worker with keys.
        """
        check_opened(payload)
        return cls.from_json(payload.data or b"null")

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read a message. Raises `ApplicationError` of type BadMessage when it is not one;
        nothing retries that.
        """
        try:
            return cls.model_validate(loads_json(data))
        except ValidationError as error:
            faults = "; ".join(map(fault, error.errors(include_url=False)[:5]))
            raise _bad_message(cls, faults) from None
        except ValueError as error:
            raise _bad_message(cls, str(error)) from None


def _plain(value: Any) -> Any:
    """A message as plain values, without what is None or the default.

    The dictionaries in a message are JSON already. They are passed on untouched, because they may
    be nested more deeply than pydantic's serializer goes.
    """
    if type(value) in _PLAIN_ALREADY:
        return value
    if isinstance(value, Wire):
        fields = type(value).model_fields.items()
        given = ((name, getattr(value, name), info) for name, info in fields)
        if value.is_complete:
            return {name: _plain(field) for name, field, _ in given}
        return {
            name: _plain(field)
            for name, field, info in given
            if field is not None and (info.is_required() or field != info.default)
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return to_jsonable_python(value)


_PLAIN_ALREADY = frozenset({dict, str, int, bool, type(None)})


def fault(error: Mapping[str, Any]) -> str:
    """One of a validation's errors in words."""
    place = ".".join(str(step) for step in error["loc"])
    return f"{place}: {error['msg']}" if place else str(error["msg"])


def check_opened(payload: Payload) -> None:
    """Raise EncryptionError, which names the key, for a payload that is encrypted still."""
    if payload.metadata.get("encoding") != ENCRYPTED:
        return
    key_id = payload.metadata.get(KEY_ID, b"").decode("utf-8", "replace")
    reason = payload.metadata.get(UNOPENED)
    if reason is None:
        raise missing_key(key_id)
    raise EncryptionError(reason.decode("utf-8", "replace"), key_id=key_id)


def _bad_message(kind: type[Wire], faults: str) -> ApplicationError:
    return ApplicationError(
        f"this is no {kind.__name__}: {faults}", type=BAD_MESSAGE, non_retryable=True
    )
