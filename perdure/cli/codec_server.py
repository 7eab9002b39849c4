"""`perdure codec-server`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence

from perdure.cli.failures import INTERRUPTED
from perdure.encryption.codec_server import DEFAULT_ORIGINS, TOKEN_VARIABLE, CodecServer
from perdure.encryption.keys import FILE_VARIABLE, VARIABLE, Keys
from perdure.errors import EncryptionError, ServerError


def serve_codec(*, host: str, port: int, origins: Sequence[str] | None, without_token: bool) -> int:
    """Decrypt for whoever asks, until told to stop; answer with the exit status.

    Raises EncryptionError when there are no keys, or the server would be open to the network,
    ServerError when the address is taken.
    """
    keys = Keys.from_environment()
    if keys is None:
        raise EncryptionError(f"there are no keys; set {VARIABLE} or {FILE_VARIABLE}")
    token = os.environ.get(TOKEN_VARIABLE, "")
    try:
        server = CodecServer(
            keys,
            host=host,
            port=port,
            origins=origins or DEFAULT_ORIGINS,
            token=token,
            without_token=without_token,
        )
    except OSError as error:
        raise ServerError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    told: list[int] = []

    def stop(number: int, frame: object) -> None:
        told.append(number)
        # `shutdown` waits for the loop that this handler interrupts.
        threading.Thread(target=server.shutdown).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    print(f"codec server at {server.url}, keys {', '.join(keys.ids)}", file=sys.stderr, flush=True)
    with server:
        server.serve_forever(poll_interval=0.1)
    return INTERRUPTED if signal.SIGINT in told else 0
