"""What passes through Temporal, encrypted: the SDK's codec and its data converter.

The codec takes each payload as a whole, its metadata included: inputs and results of workflows,
activities, signals, updates and queries, heartbeats, memos, markers of local activities, and the
summaries that the UI shows. The words of failures become a payload too, by the SDK's own failure
converter. What stays readable is on the page about security.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    PayloadCodec,
)

from perdure.encryption.keys import Keys
from perdure.errors import EncryptionError
from perdure.wire import ENCRYPTED, KEY_ID, UNOPENED

_CONTEXT = b"perdure payload"


class EncryptionCodec(PayloadCodec):
    """Encrypts every payload under the current key. Decrypts those that say which key they are
    under; any other passes, so that encryption can be turned on where sessions are alive.

    What cannot be decrypted passes too, with the reason written on it, and whoever reads it raises
    EncryptionError. If the codec raised it, a client with a wrong key could block a session: the
    SDK fails the whole workflow task for it, again and again, where the message alone can be
    refused.
    """

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    def __repr__(self) -> str:
        return f"EncryptionCodec({self.keys!r})"

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encrypt payloads."""
        return [self.sealed(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt payloads as far as the keys go."""
        return [self._opened_if_possible(payload) for payload in payloads]

    def sealed(self, payload: Payload) -> Payload:
        """One payload, encrypted."""
        data = self.keys.seal(payload.SerializeToString(), _CONTEXT)
        return Payload(
            metadata={"encoding": ENCRYPTED, KEY_ID: self.keys.current.encode()}, data=data
        )

    def opened(self, payload: Payload) -> Payload:
        """One payload, decrypted if it was encrypted. Raises EncryptionError, which names the
        key.
        """
        if payload.metadata.get("encoding") != ENCRYPTED:
            return payload
        key_id = payload.metadata.get(KEY_ID, b"").decode("utf-8", "replace")
        return Payload.FromString(self.keys.open(key_id, payload.data, _CONTEXT))

    def _opened_if_possible(self, payload: Payload) -> Payload:
        try:
            return self.opened(payload)
        except EncryptionError as error:
            unopened = Payload()
            unopened.CopyFrom(payload)
            unopened.metadata[UNOPENED] = str(error).encode()
            return unopened


def encrypting(converter: DataConverter, keys: Keys) -> DataConverter:
    """The data converter, with everything encrypted that it makes.

    Raises EncryptionError when the converter has a codec already: only one can be the last.
    """
    if converter.payload_codec is not None:
        raise EncryptionError(
            "the data converter has a codec already; call EncryptionCodec from it instead"
        )
    return dataclasses.replace(
        converter,
        payload_codec=EncryptionCodec(keys),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )


def mark_of(client: Client, text: str) -> str:
    """A short text as it may stand where no codec reaches: as it is, unless the client encrypts."""
    codec = client.data_converter.payload_codec
    return codec.keys.mark(text) if isinstance(codec, EncryptionCodec) else text
