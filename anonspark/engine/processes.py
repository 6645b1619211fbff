"""Identify processes, on this machine and later."""

from __future__ import annotations

from pathlib import Path


def process_identity(process: int) -> str | None:
    """Return what no other process of any machine has, now or later. None where it is not known.

    Process ids come again after a restart, so the start of machine and process belong to it.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold blanks; the start is the 22nd field, the 20th behind it.
    fields = status.rpartition(")")[2].split()
    if fields[0] in "ZX":  # ended, and nobody has asked how
        return None
    return f"{boot} {process} {fields[19]}"
