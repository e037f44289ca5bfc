"""The virtual board's root filesystem: unpacked Debian packages, configured by hand.

Nothing of the foreign architecture is executed, so no package script runs; what those scripts would
have made, and the lab needs, is written here. BusyBox is init: systemd tripled the boot time.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from hil.virtual.keys import make_key

PACKAGES = (
    *("base-files", "base-passwd", "bash", "dash", "busybox-static"),
    *("coreutils", "findutils", "grep", "sed", "mawk", "tar", "gzip"),
    *("libc-bin", "login", "passwd", "mount", "util-linux", "procps", "netbase", "kmod"),
    *("openssh-server", "openssh-sftp-server", "python3", "python3-minimal"),
    *("ethtool", "iproute2", "iputils-ping", "bpftool", "xdp-tools"),
)
# Goes into the tree's key: raise it when finish() changes.
FINISH_VERSION = "1"

_UNUSED = (
    *("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"),
    "usr/lib/systemd",
)

_RCS = """\
#!/bin/busybox sh
# Runs once at boot, before the console offers a login.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
hostname -F /etc/hostname
ip link set lo up
mkdir -p /run/sshd /run/lock
# Load drivers for the devices that are there, as udev would.
for file in /sys/bus/*/devices/*/modalias; do
    read -r alias < "$file" && echo "$alias"
done | sort -u | xargs -r modprobe -a -b -q
/usr/sbin/sshd
"""

_FILES = {
    "etc/hostname": "virtual-board\n",
    "etc/hosts": "127.0.0.1 localhost virtual-board\n",
    "etc/fstab": "",
    "etc/inittab": (
        "::sysinit:/etc/init.d/rcS\n"
        "::respawn:/sbin/getty -L 115200 console vt100\n"
        "::ctrlaltdel:/sbin/reboot\n"
    ),
    "etc/ssh/sshd_config": (
        "PermitRootLogin prohibit-password\n"
        "PasswordAuthentication no\n"
        "UsePAM no\n"
        "UseDNS no\n"
        "PrintMotd no\n"
        "MaxSessions 50\n"
        "HostKey /etc/ssh/ssh_host_ed25519_key\n"
        "Subsystem sftp internal-sftp\n"
    ),
    "etc/shadow": "root::20000:0:99999:7:::\nsshd:!:20000::::::\n",
    "etc/pam.d/common-auth": "auth required pam_unix.so nullok\n",
    "etc/pam.d/common-account": "account required pam_unix.so\n",
    "etc/pam.d/common-password": "password required pam_unix.so\n",
    "etc/pam.d/common-session": "session required pam_unix.so\n",
    "etc/pam.d/common-session-noninteractive": "session required pam_unix.so\n",
}


def finish(root: Path) -> None:
    """Make an unpacked tree bootable: users, login, init, ssh server, host key."""
    for directory in _UNUSED:
        shutil.rmtree(root / directory, ignore_errors=True)
    master = root / "usr/share/base-passwd"
    users = (master / "passwd.master").read_text().replace("root:*:", "root:x:")
    (root / "etc/passwd").write_text(users + "sshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n")
    shutil.copy(master / "group.master", root / "etc/group")
    for name, text in _FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "etc/shadow").chmod(0o600)
    start_script = root / "etc/init.d/rcS"
    start_script.parent.mkdir(exist_ok=True)
    start_script.write_text(_RCS)
    start_script.chmod(0o755)
    init = root / "usr/sbin/init"
    init.unlink(missing_ok=True)
    init.symlink_to("../bin/busybox")
    (root / "usr/sbin/reboot").unlink(missing_ok=True)
    (root / "usr/sbin/reboot").symlink_to("../bin/busybox")
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    make_key(root / "etc/ssh/ssh_host_ed25519_key")


def authorize(root: Path, public_key: str) -> None:
    """Let the holder of this key log in as root over ssh."""
    path = root / "root/.ssh/authorized_keys"
    path.write_text(public_key)
    path.chmod(0o600)
