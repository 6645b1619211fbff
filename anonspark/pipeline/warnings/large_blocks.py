"""The warning that one task holds far more records than others, because a block cannot be cut."""

from __future__ import annotations

from anonspark.pipeline.warnings.release_warning import ReleaseWarning


def large_block_warnings(rows: int) -> list[ReleaseWarning]:
    """Warn of the largest block of a release that cannot be cut into blocks of usual size.

    Parameters
    ----------
    rows : int
        Its records; 0 if all blocks have about the usual size.
    """
    if not rows:
        return []
    # Its first two digits.
    step = 10 ** max(len(str(rows)) - 2, 0)
    about = rows // step * step
    return [
        ReleaseWarning(
            "large_block",
            f"a block of about {about:,} records cannot be cut: its records are equal in every "
            "quasi-identifier, or a criterion allows no cut. One task takes the whole block, "
            "whatever execution.task_rows says, and needs more time and memory than other tasks. "
            "Give each task memory for so many records; if a criterion is the reason, weaken it",
            figures={"records": about},
        )
    ]
