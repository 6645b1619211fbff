"""The warning that k = 1 protects nobody."""

from __future__ import annotations

from anonspark.config import Configuration
from anonspark.pipeline.warnings.release_warning import ReleaseWarning


def no_protection_warnings(configuration: Configuration) -> list[ReleaseWarning]:
    """Warn of k = 1, which ``privacy.allow_k_1`` allows."""
    if configuration.privacy.k > 1:
        return []
    return [
        ReleaseWarning(
            "no_protection",
            "privacy.k is 1: every record may be a class of its own, and nobody is protected. "
            "Compare with this release, and publish one with a larger k",
        )
    ]
