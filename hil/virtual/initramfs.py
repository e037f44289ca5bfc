"""A small initramfs that gives a modular kernel what a TI kernel has built in: the NFS root.

It loads the network and NFS modules and then obeys the same `ip=` and `nfsroot=` words, prints the
same lines on failure, and hands over to the same root filesystem.
"""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hil.errors import LabError
from hil.virtual.tools import ToolTree

# What the board needs until its root is mounted.
MODULES = ("virtio_net", "virtio_mmio", "nfsv4", "nfsv3")
FINISH_VERSION = "1"

_INIT = r"""#!/bin/sh
/bin/busybox --install -s /bin
mount -t devtmpfs devtmpfs /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys

fail() {
    echo "$1"
    echo "Kernel panic - not syncing: VFS: Unable to mount root fs (initramfs)" > /dev/kmsg
    # as a kernel without initramfs would do
    echo 1 > /proc/sys/kernel/sysrq
    echo c > /proc/sysrq-trigger
}

while read -r module; do
    insmod "/lib/modules/$module" || echo "initramfs: module $module could not be loaded"
done < /lib/modules/order

init=/sbin/init
for word in $(cat /proc/cmdline); do
    case $word in
        ip=*) ip=${word#ip=} ;;
        nfsroot=*) nfsroot=${word#nfsroot=} ;;
        init=*) init=${word#init=} ;;
    esac
done

# ip=CLIENT:SERVER:GATEWAY:NETMASK:HOSTNAME:DEVICE:AUTOCONF
old=$IFS; IFS=:; set -- $ip; IFS=$old
client=$1 gateway=$3 netmask=$4 device=$6 method=$7
[ -e "/sys/class/net/$device" ] || fail "IP-Config: Device \`$device' not found"
ip link set lo up
ip link set "$device" up
if [ "$method" = dhcp ]; then
    udhcpc -i "$device" -q -n -s /bin/lease || fail "IP-Config: Auto-configuration failed"
else
    ifconfig "$device" "$client" netmask "$netmask"
    [ -z "$gateway" ] || ip route add default via "$gateway"
fi
echo "IP-Config: Complete:"

# nfsroot=SERVER:/PATH,OPTIONS
server=${nfsroot%%:*}
path=${nfsroot#*:}
options=${path#*,}
path=${path%%,*}
tries=0
until mount -t nfs -o "nolock,addr=$server,$options" "$server:$path" /newroot; do
    tries=$((tries + 1))
    [ $tries -lt 5 ] || fail "VFS: Unable to mount root fs via NFS."
    sleep 1
done
echo "VFS: Mounted root (nfs filesystem)."
umount /proc /sys
mount --move /dev /newroot/dev
exec switch_root /newroot "$init"
"""

_LEASE = """#!/bin/sh
# udhcpc's hook: put the lease on the interface
[ "$1" = bound ] || exit 0
ifconfig "$interface" "$ip" netmask "$subnet"
for gateway in $router; do ip route add default via "$gateway"; done
"""


def build(target: Path, *, modules: Path, busybox: Path, tools: ToolTree) -> None:
    """Write the compressed archive `target`.

    `modules` is a lib/modules/RELEASE directory that depmod has been run on, `busybox` a static
    binary of the board's architecture.
    """
    with tempfile.TemporaryDirectory(prefix="hil-initramfs-") as temporary:
        root = Path(temporary)
        for directory in ("bin", "dev", "proc", "sys", "newroot", "tmp", "lib/modules"):
            (root / directory).mkdir(parents=True)
        shutil.copy(busybox, root / "bin/busybox")
        (root / "bin/sh").symlink_to("busybox")
        # the kernel opens it before anything is mounted
        os.mknod(root / "dev/console", 0o020600, os.makedev(5, 1))
        order = load_order(modules, MODULES)
        for path in order:
            _unpack_module(modules / path, root / "lib/modules")
        names = [Path(path).name.removesuffix(".xz") for path in order]
        (root / "lib/modules/order").write_text("".join(f"{name}\n" for name in names))
        for name, text in (("init", _INIT), ("bin/lease", _LEASE)):
            (root / name).write_text(text)
            (root / name).chmod(0o755)
        files = "".join(f"{path.relative_to(root)}\n" for path in sorted(root.rglob("*")))
        archive = subprocess.run(
            tools.argv("cpio", "--create", "--format=newc", "--quiet"),
            input=files.encode(),
            stdout=subprocess.PIPE,
            cwd=root,
            check=True,
        ).stdout
    target.write_bytes(gzip.compress(archive, compresslevel=1, mtime=0))


def load_order(modules: Path, wanted: tuple[str, ...]) -> list[str]:
    """Module files below `modules`, each after those that it depends on; built-in ones are absent.

    Reads modules.dep (depmod's). LabError when a name is neither a module nor built in.
    """
    dependencies: dict[str, list[str]] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        dependencies[path] = rest.split()
    by_name = {Path(path).name.split(".")[0].replace("-", "_"): path for path in dependencies}
    builtin = (modules / "modules.builtin").read_text()
    order: list[str] = []
    for name in wanted:
        if name in by_name:
            path = by_name[name]
            # modules.dep lists the direct needs first, so the last one has to be loaded first
            order += [p for p in (*reversed(dependencies[path]), path) if p not in order]
        elif f"/{name}.ko" not in builtin:
            raise LabError(f"{modules}: has no module {name}, which the initramfs needs")
    return order


def _unpack_module(source: Path, directory: Path) -> None:
    data = source.read_bytes()
    if source.suffix == ".xz":
        data = lzma.decompress(data)
    (directory / source.name.removesuffix(".xz")).write_bytes(data)
