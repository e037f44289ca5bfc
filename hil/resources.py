"""labgrid resources that a network test bench has beyond labgrid's own."""

from __future__ import annotations

import attr
from labgrid.factory import target_factory
from labgrid.resource.common import Resource


@target_factory.reg_resource
@attr.s(eq=False)
class NFSRoot(Resource):
    """The root filesystem that the board mounts.

    labgrid's NFSProvider stages single files, so the tree is named here: `server` and `path` as the
    board sees them, `options` for the mount, `local` the same tree on this host ("" when it is
    elsewhere; then modules cannot be staged from here).
    """

    server: str = attr.ib(validator=attr.validators.instance_of(str))
    path: str = attr.ib(validator=attr.validators.instance_of(str))
    options: str = attr.ib(default="v3,tcp", validator=attr.validators.instance_of(str))
    local: str = attr.ib(default="", validator=attr.validators.instance_of(str))


@target_factory.reg_resource
@attr.s(eq=False)
class LinkPartner(Resource):
    """The other end of the data ports' cables: an ssh host or a network namespace of this host.

    `ports` maps the board profile's port names to the partner's interface names.
    """

    ports: dict[str, str] = attr.ib(validator=attr.validators.instance_of(dict))
    host: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    namespace: str = attr.ib(default="", validator=attr.validators.instance_of(str))

    def interface(self, port: str) -> str | None:
        """Interface that is cabled to this port of the board; None when there is no cable."""
        return self.ports.get(port)
