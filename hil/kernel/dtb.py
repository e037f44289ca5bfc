"""Reading flattened device trees: is a profile's port really in the file that is booted?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import libfdt

from hil.errors import ConfigError

_QUIET = libfdt.QUIET_NOTFOUND
# a path without a leading slash is taken for an alias, and a bad path when there is none
_NO_PATH = (*_QUIET, libfdt.BADPATH)


class DeviceTree:
    """A .dtb file. Paths are full paths such as `/bus@f4000/ethernet@8000000`.

    ConfigError when the file cannot be read; asking about a node that is not there is one too,
    and names the nearest node that is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._tree = libfdt.FdtRo(path.read_bytes())
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}; check the device tree's name") from error
        except libfdt.FdtException as error:
            raise ConfigError(f"{path}: not a device tree ({error}); build it again") from error

    def exists(self, node: str) -> bool:
        return self._find(node) >= 0

    def children(self, node: str) -> tuple[str, ...]:
        """Names of the nodes directly below, in the file's order."""
        return tuple(self._tree.get_name(child) for child in self._child_offsets(node))

    def status(self, node: str) -> str:
        """The node's own `status`; "okay" when it has none, as the specification says."""
        return (self.strings(node, "status") or ("okay",))[0]

    def enabled(self, node: str) -> bool:
        """Whether a driver gets to see the node: neither it nor one above it is disabled."""
        parts = node.strip("/").split("/")
        paths = ["/" + "/".join(parts[: end + 1]) for end in range(len(parts))]
        return all(self.status(path) in ("okay", "ok") for path in paths)

    def has(self, node: str, name: str) -> bool:
        """Whether the node has this property, whatever its value."""
        return self._value(node, name) is not None

    def strings(self, node: str, name: str) -> tuple[str, ...]:
        """A property as its list of texts; () when there is no such property."""
        value = self._value(node, name)
        return tuple(value.decode().rstrip("\0").split("\0")) if value else ()

    def alias(self, name: str) -> str | None:
        """The path that an alias such as `ethernet0` stands for; None without that alias."""
        if not self.exists("/aliases"):
            return None
        return next(iter(self.strings("/aliases", name)), None)

    def ethernet_ports(self) -> tuple[str, ...]:
        """Paths of the ports of all multi-port controllers, disabled ones too.

        These are the nodes below an `ethernet-ports` node; a controller with a single port has
        no such node and is not found.
        """
        return tuple(
            f"{node}/{port}"
            for node in self._walk("")
            if node.endswith("/ethernet-ports")
            for port in self.children(node)
        )

    def _walk(self, node: str) -> Iterator[str]:
        for child in self.children(node or "/"):
            path = f"{node}/{child}"
            yield path
            yield from self._walk(path)

    def _child_offsets(self, node: str) -> Iterator[int]:
        offset = self._tree.first_subnode(self._offset(node), _QUIET)
        while offset >= 0:
            yield offset
            offset = self._tree.next_subnode(offset, _QUIET)

    def _value(self, node: str, name: str) -> bytes | None:
        value = self._tree.getprop(self._offset(node), name, _QUIET)
        return None if isinstance(value, int) else bytes(value)

    def _offset(self, node: str) -> int:
        offset = self._find(node)
        if offset < 0:
            nearest = self._nearest(node)
            below = ", ".join(self.children(nearest)) or "nothing"
            raise ConfigError(f"{self.path}: no node {node}; {nearest} is there and has {below}")
        return offset

    def _find(self, node: str) -> int:
        offset: int = self._tree.path_offset(node, _NO_PATH)
        # libfdt also takes a name without its unit address; sysfs and the profiles never do
        exact = offset >= 0 and self._tree.get_path(offset) == node
        return offset if exact else -1

    def _nearest(self, node: str) -> str:
        while node and not self.exists(node):
            node = node.rpartition("/")[0]
        return node or "/"
