"""Keys by name: the first one encrypts, each of them decrypts what it has encrypted.

Written down they are `ID:KEY`, the key being 32 bytes in base64, several of them by commas or on
lines of their own; from a `#` to the end of a line is a comment. The first one is the current one.
To rotate, put a new one in front, and leave the old ones as long as anything is encrypted with
them.

    2026-11:3q2+7w…=,2026-05:yv66vg…=
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, Self

from perdure.errors import EncryptionError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VARIABLE = "PERDURE_KEYS"
"""The environment variable that holds keys."""

FILE_VARIABLE = "PERDURE_KEYS_FILE"
"""The environment variable that names a file with keys."""

KEY_BYTES = 32
"""The length of a key: AES with 256 bits."""

_NONCE_BYTES = 12
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FORM = f"write keys as ID:KEY, KEY being {KEY_BYTES} bytes in base64, several by commas"
_NO_LIBRARY = "encryption needs the package `cryptography`: install perdure[encryption]"


class Keys:
    """Keys by their IDs; the first is the current one.

    What is sealed is sealed for a context, a few bytes that whoever opens it must know too, so that
    it cannot be passed off as something else. A key is good for some four billion seals; rotate
    long before that.
    """

    __slots__ = ("_ciphers", "_mark_key", "current")

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """Raises EncryptionError: there are none, one is no key, or `cryptography` is missing."""
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise EncryptionError(_NO_LIBRARY) from None
        if not keys:
            raise EncryptionError(f"there are no keys; {_FORM}")
        for number, (key_id, key) in enumerate(keys.items(), 1):
            # An ID that is none is not repeated: it may be a key in the wrong place.
            if not _ID.fullmatch(key_id):
                raise EncryptionError(
                    f"key {number} has no ID of 1 to 64 letters, digits, '.', '_' and '-'; {_FORM}"
                )
            if len(key) != KEY_BYTES:
                raise EncryptionError(f"key {number} is not {KEY_BYTES} bytes long; {_FORM}")
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}
        self.current = next(iter(keys))
        self._mark_key = hashlib.sha256(b"perdure mark\0" + keys[self.current]).digest()

    @property
    def ids(self) -> tuple[str, ...]:
        """The IDs of the keys, the current one first."""
        return tuple(self._ciphers)

    def __repr__(self) -> str:
        return f"Keys(ids={list(self.ids)!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys are not pickled; give each process its own, by its environment")

    @classmethod
    def parse(cls, text: str) -> Self:
        """The keys of a text. Raises EncryptionError, which repeats nothing of the text."""
        found: dict[str, bytes] = {}
        lines = (line.partition("#")[0] for line in text.splitlines())
        given = [part.strip() for line in lines for part in line.split(",") if part.strip()]
        for number, part in enumerate(given, 1):
            key_id, colon, encoded = part.partition(":")
            key = _decoded(encoded.strip())
            if not colon or key is None:
                raise EncryptionError(f"key {number} cannot be read; {_FORM}")
            if key_id.strip() in found:
                raise EncryptionError(f"key {number} has the ID of another; {_FORM}")
            found[key_id.strip()] = key
        return cls(found)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """The keys of a file. Raises EncryptionError when it cannot be read or holds none."""
        try:
            text = Path(path).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise EncryptionError(f"the keys in {path} cannot be read: {reason}") from None
        try:
            return cls.parse(text)
        except EncryptionError as error:
            raise EncryptionError(f"{path}: {error}") from None

    @classmethod
    def from_environment(cls) -> Self | None:
        """The keys of PERDURE_KEYS, or of the file that PERDURE_KEYS_FILE names; None when neither
        is set. Raises EncryptionError when both are, or what is set holds no keys.
        """
        text, path = os.environ.get(VARIABLE, ""), os.environ.get(FILE_VARIABLE, "")
        if text and path:
            raise EncryptionError(f"both {VARIABLE} and {FILE_VARIABLE} are set; keep one of them")
        if path:
            return cls.from_file(path)
        if not text:
            return None
        try:
            return cls.parse(text)
        except EncryptionError as error:
            raise EncryptionError(f"{VARIABLE}: {error}") from None

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Encrypt under the current key: a nonce, then ciphertext and tag of AES-GCM."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher(self.current).encrypt(nonce, plain, context)

    def open(self, key_id: str, sealed: bytes, context: bytes) -> bytes:
        """Decrypt. Raises EncryptionError, which names the key: it is missing or another one, or
        the data was changed, or belongs elsewhere.
        """
        from cryptography.exceptions import InvalidTag

        nonce, encrypted = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher(key_id).decrypt(nonce, encrypted, context)
        except (InvalidTag, ValueError):
            raise EncryptionError(
                f"what was encrypted with key {key_id!r} cannot be decrypted with the key of that "
                "ID here: either is another one than it was",
                key_id=key_id,
            ) from None

    def mark(self, text: str) -> str:
        """The same 16 characters for the same text under the same key, which tell nothing of it."""
        return hmac.new(self._mark_key, text.encode(), hashlib.sha256).hexdigest()[:16]

    def _cipher(self, key_id: str) -> AESGCM:
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise missing_key(key_id, self.ids)
        return cipher


def missing_key(key_id: str, known: tuple[str, ...] = ()) -> EncryptionError:
    """The error for what is encrypted with a key that is not here."""
    here = f"the keys here are {', '.join(map(repr, known))}" if known else "no keys are set here"
    return EncryptionError(
        f"this is encrypted with key {key_id[:64]!r}, and {here}; "
        f"add it to {VARIABLE} or to the file that {FILE_VARIABLE} names",
        key_id=key_id,
    )


def new_key(key_id: str) -> str:
    """A fresh key as it is written down."""
    encoded = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    return f"{key_id}:{encoded}"


def _decoded(text: str) -> bytes | None:
    padded = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
