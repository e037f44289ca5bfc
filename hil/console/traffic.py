"""Traffic that stops without an error line: xdp-bench counts nothing on a good link. Pure."""

from __future__ import annotations

import hashlib
import re

from hil.console.model import Finding

NO_TRAFFIC = "no_traffic_after_xdp"

_START = re.compile(
    r"(?:Dropping|Hairpinning|Passing|Redirecting)\b.* on (?P<iface>\S+) "
    r"\(ifindex \d+; (?:queue (?P<queue>\d+); )?driver (?P<driver>[\w-]+)\)"
)
_MODE = re.compile(r"(?:-m|--mode) (?P<mode>native|skb|hw)")
_RATE = re.compile(r"(?:^Summary|^\S+->\S+|^\S+:\d+)\s+(?P<rate>[\d,.'\u00a0]+) rx/s")
_LINK = re.compile(r"(?P<iface>[\w.]+): (?:NIC )?Link is (?P<state>Up|Down)", re.IGNORECASE)
_END = re.compile(r"^\^C|^\s+(?:Packets received|Duration)\s*:|^Totals:")
# After a link came up the first interval is a partial one.
_WARM_UP = 1
_STEADY = 2


class TrafficWatch:
    """Follows a run of xdp-bench in a console log."""

    def __init__(self) -> None:
        self._mode: str | None = None
        self._run: re.Match[str] | None = None
        self._rates: list[tuple[int, int, str]] = []
        self._found: Finding | None = None

    @property
    def busy(self) -> bool:
        """Whether a run has begun and not ended."""
        return self._run is not None

    def line(self, text: str, number: int) -> None:
        if match := _MODE.search(text):
            self._mode = match["mode"]
        if match := _START.search(text):
            self._run, self._rates = match, []
        elif self._run is not None:
            self._follow(text, number)

    def _follow(self, text: str, number: int) -> None:
        assert self._run is not None
        if match := _RATE.search(text):
            self._rates.append((int(re.sub(r"\D", "", match["rate"])), number, text))
        elif (match := _LINK.search(text)) and match["iface"] == self._run["iface"]:
            # what came before the link is up says nothing
            if match["state"].lower() == "up":
                self._rates = []
        elif _END.search(text):
            self._judge()
            self._run = None

    def _judge(self) -> None:
        steady = self._rates[_WARM_UP:]
        if len(steady) < _STEADY or any(rate for rate, _, _ in steady):
            return
        assert self._run is not None
        _, number, text = steady[0]
        driver = self._run["driver"]
        identity = f"{NO_TRAFFIC}\0{driver}\0{self._mode}"
        self._found = self._found or Finding(
            category=NO_TRAFFIC,
            severity="error",
            blame="kernel",
            stage="userspace",
            line=text,
            line_number=number,
            fingerprint=hashlib.sha256(identity.encode()).hexdigest()[:12],
            driver=driver,
            details={"iface": self._run["iface"], "mode": self._mode},
            lines=(self._run.group(), *(text for _, _, text in steady)),
        )

    def finish(self) -> Finding | None:
        """What the log showed, once it is over."""
        if self._run is not None:
            self._judge()
        return self._found
