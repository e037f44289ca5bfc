"""What is typed at the U-Boot prompt to netboot a board. Pure: text from a profile, nothing sent.

Every variable is set anew at each boot, because saved environments of real boards cannot be relied
on. A step is one command line with its own deadline, so that a failure can name itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hil.boards.model import BoardProfile

# ARM boards read lines of 1024 bytes (SYS_CBSIZE); labgrid adds its markers to each.
LINE_LIMIT_BYTES = 900


@attrs.frozen
class Step:
    """One line for the prompt: `what` names it in errors, `file` is the file it fetches, if any.

    `size_bytes` is what U-Boot's `filesize` must be after a transfer.
    """

    what: str
    command: str
    deadline_s: float
    file: str | None = None
    size_bytes: int | None = None


@attrs.frozen
class StagedFile:
    """A file in the TFTP directory: its name as the board asks for it, and its length."""

    name: str
    size_bytes: int


@attrs.frozen
class Payload:
    """What is sent to the board, and the server's address ("" leaves the one that DHCP gives)."""

    kernel: StagedFile
    dtb: StagedFile
    initramfs: StagedFile | None
    tftp_server: str
    command_line: str


def steps(board: BoardProfile, payload: Payload) -> Iterator[Step]:
    """Everything before the boot command, in order."""
    netboot, deadlines = board.netboot, board.deadlines
    # netretry: a transfer that fails has to come back to the prompt instead of starting over
    settings = {"autoload": "no", "netretry": "no", **board.bootloader.environment}
    if board.bootloader.ethact:
        settings["ethact"] = board.bootloader.ethact
    for line in _set_lines(settings):
        yield Step("environment", line, 10.0)
    yield Step("DHCP", "dhcp", deadlines.dhcp)
    if payload.tftp_server:
        # after dhcp, which may overwrite it
        yield Step("environment", f"setenv serverip {payload.tftp_server}", 10.0)
    for what, address, staged in (
        ("kernel", netboot.kernel_address, payload.kernel),
        ("device tree", netboot.dtb_address, payload.dtb),
        ("initramfs", netboot.initramfs_address, payload.initramfs),
    ):
        if staged:
            yield Step(
                f"TFTP of the {what}",
                f"tftpboot {address:#x} {staged.name} && printenv filesize",
                deadlines.tftp,
                staged.name,
                staged.size_bytes,
            )
    yield Step("environment", f'setenv bootargs "{payload.command_line}"', 10.0)


def boot_line(board: BoardProfile, payload: Payload) -> str:
    """The command that leaves U-Boot."""
    netboot = board.netboot
    ramdisk = "-"
    if payload.initramfs:
        ramdisk = f"{netboot.initramfs_address:#x}:{payload.initramfs.size_bytes:#x}"
    return f"{netboot.boot_command} {netboot.kernel_address:#x} {ramdisk} {netboot.dtb_address:#x}"


def _set_lines(settings: dict[str, str]) -> Iterator[str]:
    """`setenv` commands, as many on a line as fit: a round trip for each would cost time."""
    line = ""
    for name, value in settings.items():
        command = f"setenv {name} {value}"
        if line and len(line) + len(command) > LINE_LIMIT_BYTES:
            yield line
            line = ""
        line += ("; " if line else "") + command
    if line:
        yield line
