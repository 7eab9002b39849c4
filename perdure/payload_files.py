"""Large payloads as files: a driver for the SDK's external storage.

One file for each payload, `<folder>/<namespace>/<workflow ID>/<digest>`, all parts percent-encoded.
A payload that is stored again, by an attempt that is repeated, is the same file, and as new as the
last time: what no workflow that exists has stored since it began is not needed any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from perdure.errors import StoreError

NAME = "perdure.files"
"""The driver's name, which is written into references: permanent."""

_KEY = "file"
_NOWHERE = "_"


class PayloadFiles(StorageDriver):
    """Keeps payloads as files in a folder that all workers and clients reach.

    A file is on disk when its payload counts as stored, and what is read is checked against its
    digest. No reference leads out of the folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Raises StoreError when `root` is something else than a folder."""
        self.root = Path(os.path.abspath(root))
        if self.root.exists() and not self.root.is_dir():
            raise StoreError(f"{self.root} is not a folder; name a folder for payloads")

    def __repr__(self) -> str:
        return f"PayloadFiles({str(self.root)!r})"

    def name(self) -> str:
        """The name by which references find the driver."""
        return NAME

    def type(self) -> str:
        """What kind of driver this is."""
        return NAME

    async def store(
        self, context: StorageDriverStoreContext, payloads: Sequence[Payload]
    ) -> list[StorageDriverClaim]:
        """Write payloads. Raises StoreError when the disk does not take them."""
        target = context.target
        parts = (target.namespace, target.id or "") if target is not None else ("", "")
        folder = "/".join(encoded(part) for part in parts)
        return [await asyncio.to_thread(self._write, folder, payload) for payload in payloads]

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """Read payloads. Raises StoreError when one is not there, or is not what was stored."""
        return [await asyncio.to_thread(self._read, claim) for claim in claims]

    def _write(self, folder: str, payload: Payload) -> StorageDriverClaim:
        data = payload.SerializeToString(deterministic=True)
        name = f"{folder}/{hashlib.sha256(data).hexdigest()}"
        path = self.root / name
        try:
            try:
                os.utime(path)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                _write_whole(path, data)
        except OSError as error:
            raise StoreError(f"a payload cannot be kept in {self.root}: {error.strerror}") from None
        return StorageDriverClaim(claim_data={_KEY: name})

    def _read(self, claim: StorageDriverClaim) -> Payload:
        name = claim.claim_data.get(_KEY, "")
        digest = name.rpartition("/")[2]
        path = Path(os.path.normpath(self.root / name))
        if not path.is_relative_to(self.root):
            raise StoreError("a reference to a payload leads out of its folder")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise StoreError(
                f"the payload {name} is not in {self.root}: {error.strerror}; all workers and "
                "clients need the same folder"
            ) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError(f"the payload {name} in {self.root} is not what was stored")
        return Payload.FromString(data)


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there whole, on disk, or not at all."""
    handle, new = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def encoded(part: str) -> str:
    """A part of a path as one name; one that is too long as its digest."""
    name = quote(part, safe=":@").replace(".", "%2E") or _NOWHERE
    return name if len(name) <= 250 else hashlib.sha256(part.encode()).hexdigest()
