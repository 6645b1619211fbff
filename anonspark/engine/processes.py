"""Identify processes, on this machine and later."""

from __future__ import annotations

from pathlib import Path


def process_identity(process: int) -> str | None:
    """Return a text that no other process of any machine has, now or later, or None if it ended.

    Process ids come again after a restart, so the text has the boot and the start of the process.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold blanks; the start is the 22nd field, the 20th behind it.
    fields = status.rpartition(")")[2].split()
    if fields[0] in "ZX":  # ended, but its parent has not fetched the exit code
        return None
    return f"{boot} {process} {fields[19]}"
