"""A virtual power distribution unit, as labgrid's power model `rest` talks to it.

`PUT /outlet/N` with body 1 or 0 switches, `GET /outlet/N` answers 1 or 0.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Protocol

from hil.errors import HilError

log = logging.getLogger(__name__)

# The outlet of a lab's only board.
OUTLET = 1


class Outlet(Protocol):
    def on(self) -> None: ...
    def off(self) -> None: ...

    @property
    def powered(self) -> bool: ...


class Pdu:
    """Serves outlets over HTTP on a free loopback port, from start() to stop().

    Requests are handled one after the other in one thread that lives as long as the unit: QEMU is
    started from it, and its parent-death signal is tied to that thread.
    """

    def __init__(self, outlets: Mapping[int, Outlet]) -> None:
        handler = type("OutletHandler", (_Handler,), {"outlets": outlets})
        self._server = HTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="pdu", args=(0.05,))

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Where the board's power is switched."""
        return f"http://127.0.0.1:{self.port}/outlet/{OUTLET}"

    def resource(self) -> dict[str, Any]:
        """The values of labgrid's NetworkPowerPort for the board's outlet."""
        return {
            "host": f"http://127.0.0.1:{self.port}/outlet/{{index}}",
            "index": str(OUTLET),
        }

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    outlets: Mapping[int, Outlet]
    timeout = 2  # seconds; a client that connects and says nothing must not block the unit

    def _outlet(self) -> Outlet | None:
        match = re.fullmatch(r"/outlet/(\d+)", self.path)
        outlet = self.outlets.get(int(match.group(1))) if match else None
        if outlet is None:
            self._reply(404, f"no such outlet: {self.path}")
        return outlet

    def do_GET(self) -> None:
        if outlet := self._outlet():
            self._reply(200, "1" if outlet.powered else "0")

    def do_PUT(self) -> None:
        value = self.rfile.read(int(self.headers.get("Content-Length") or 0)).strip()
        outlet = self._outlet()
        if outlet is None:
            return
        if value not in (b"0", b"1"):
            self._reply(400, "the body must be 0 or 1")
            return
        try:
            outlet.on() if value == b"1" else outlet.off()
        except (HilError, OSError) as error:
            log.error("outlet %s: %s", self.path, error)
            self._reply(500, str(error))
            return
        self._reply(200, value.decode())

    def _reply(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        log.info("pdu: " + format, *args)
