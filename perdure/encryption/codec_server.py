"""An HTTP server that decrypts for the Temporal UI and CLI: Temporal's remote codec, /encode and
/decode.

Whoever reaches it reads everything, so it listens on the loopback unless it has a token, answers
browsers for the origins that it was told only, and logs nothing of what passes.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Final

from google.protobuf.json_format import MessageToJson, Parse, ParseError
from temporalio.api.common.v1 import Payloads

from perdure.encryption.keys import Keys
from perdure.encryption.payloads import EncryptionCodec
from perdure.errors import EncryptionError

TOKEN_VARIABLE = "PERDURE_CODEC_TOKEN"
"""The environment variable that holds the token."""

DEFAULT_ORIGINS: Final = ("http://localhost:8233", "http://127.0.0.1:8233")
"""Where the UI of a development server is."""

MAX_BODY = 128 * 1024 * 1024
"""Bytes of a request that are read."""

_TIMEOUT = 30.0

logger = logging.getLogger("perdure.codec_server")


class CodecServer(ThreadingHTTPServer):
    """Serves until it is shut down.

    Raises EncryptionError when it would be open to the network; `without_token` says that something
    else keeps strangers away.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self,
        keys: Keys,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        origins: Sequence[str] = DEFAULT_ORIGINS,
        token: str = "",
        without_token: bool = False,
    ) -> None:
        if not (token or without_token or _is_loopback(host)):
            raise EncryptionError(
                f"a codec server at {host} decrypts for everyone who reaches it; set "
                f"{TOKEN_VARIABLE}, or listen on 127.0.0.1"
            )
        self.codec = EncryptionCodec(keys)
        self.origins = frozenset(origin.rstrip("/") for origin in origins)
        self.token = token.encode()
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is no news, and a traceback may show what passed."""
        logger.debug("a connection from %s broke", client_address)


class _Handler(BaseHTTPRequestHandler):
    server: CodecServer
    timeout = _TIMEOUT
    server_version = "perdure"
    sys_version = ""

    def do_OPTIONS(self) -> None:
        if self._comes_from_elsewhere():
            self._answer(HTTPStatus.FORBIDDEN, "this origin is not allowed")
        else:
            self._answer(HTTPStatus.NO_CONTENT)

    def do_POST(self) -> None:
        # Read first: an answer to a request that is half sent may not arrive.
        body = self._body()
        if self._comes_from_elsewhere():
            self._answer(HTTPStatus.FORBIDDEN, "this origin is not allowed; see --origin")
        elif not self._is_authorized():
            self._answer(HTTPStatus.UNAUTHORIZED, "a token is needed: Authorization: Bearer …")
        elif body is None:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MAX_BODY:,} bytes")
        else:
            self._convert(body)

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug(format, *args)

    def _convert(self, body: bytes) -> None:
        codec = self.server.codec
        verb = self.path.partition("?")[0].rstrip("/").rpartition("/")[2]
        convert = {"encode": codec.sealed, "decode": codec.opened}.get(verb)
        if convert is None:
            self._answer(HTTPStatus.NOT_FOUND, "ask for /encode or /decode")
            return
        try:
            given = Parse(body, Payloads())
        except (ParseError, UnicodeDecodeError, RecursionError):
            self._answer(HTTPStatus.BAD_REQUEST, "the body is no Payloads in JSON")
            return
        try:
            converted = [convert(payload) for payload in given.payloads]
        except EncryptionError as error:
            self._answer(HTTPStatus.BAD_REQUEST, str(error))
            return
        answer = MessageToJson(Payloads(payloads=converted), indent=None)
        self._answer(HTTPStatus.OK, answer, kind="application/json")

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return None
        return self.rfile.read(int(length))

    def _comes_from_elsewhere(self) -> bool:
        """Whether a page of another origin asks. Programs that are no browser name none."""
        origin = self.headers.get("Origin")
        return origin is not None and origin not in self.server.origins

    def _is_authorized(self) -> bool:
        token = self.server.token
        given = self.headers.get("Authorization", "").encode("latin-1", "replace")
        return not token or hmac.compare_digest(given, b"Bearer " + token)

    def _answer(self, status: HTTPStatus, text: str = "", *, kind: str = "text/plain") -> None:
        data = text.encode()
        self.send_response(status)
        origin = self.headers.get("Origin")
        if origin is not None and origin in self.server.origins:
            self.send_header("Access-Control-Allow-Origin", origin)
            self.send_header("Access-Control-Allow-Credentials", "true")
            self.send_header("Access-Control-Allow-Methods", "POST, OPTIONS")
            self.send_header(
                "Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace"
            )
        self.send_header("Vary", "Origin")
        self.send_header("Cache-Control", "no-store")
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
