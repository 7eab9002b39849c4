"""How a client and its workers turn messages into what Temporal carries."""

from __future__ import annotations

import dataclasses

from temporalio.converter import DataConverter, ExternalStorage

from perdure.encryption.keys import Keys
from perdure.encryption.payloads import encrypting
from perdure.large_payloads import external_storage


def data_converter(
    *,
    keys: Keys | None = None,
    payloads: str | ExternalStorage | None = None,
    converter: DataConverter = DataConverter.default,
) -> DataConverter:
    """The data converter for clients, workers and replayers: encrypting under `keys`, if any are
    given, and keeping large payloads where `payloads`, or else PERDURE_PAYLOADS, says.

    Raises EncryptionError when the converter has a codec already, StoreError for a place of
    payloads that is none.
    """
    if keys is not None:
        converter = encrypting(converter, keys)
    storage = external_storage(payloads)
    if storage is not None:
        converter = dataclasses.replace(converter, external_storage=storage)
    return converter
