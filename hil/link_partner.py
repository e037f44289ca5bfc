"""The link partner that an environment names, connected."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hil.errors import ConfigError
from hil.resources import LinkPartner
from hil.runners import Host, NamespaceHost
from hil.ssh_host import SshHost


@contextlib.contextmanager
def connect(resource: LinkPartner) -> Iterator[Host]:
    """The machine at the other ends of the cables, for as long as the context is entered.

    ConfigError when the resource names none, LabError when it cannot be reached.
    """
    if resource.namespace:
        yield NamespaceHost(resource.namespace)
    elif resource.host:
        with SshHost(resource.host) as host:
            yield host
    else:
        raise ConfigError("LinkPartner: give host in lab.yaml, or set HIL_PARTNER_HOST")
