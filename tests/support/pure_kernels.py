"""Kernels as plain Python, where NUMBA_DISABLE_JIT is 1: for a debugger, or a bug on purpose.

Nothing is compiled, so that a change of a kernel is tried at once.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from anonspark.kernels.compiling import Kernel
from anonspark.kernels.signatures import Deferred


def use_pure_kernels() -> None:
    """Have kernels run without machine code if the environment asks for it."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        Kernel._load = _load  # type: ignore[method-assign]
        Deferred.__call__ = _call  # type: ignore[method-assign]


_as_signature = Deferred.__call__


def _call(self: Deferred, *arguments: Any, **named: Any) -> Any:
    """Convert a number, as the type does in the body of a kernel."""
    if len(arguments) == 1 and isinstance(arguments[0], (numbers.Number, np.bool_)) and not named:
        return getattr(np, self.name)(arguments[0])
    return _as_signature(self, *arguments, **named)


def _load(self: Kernel) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        # Hashes wrap around, as machine code has them do.
        with np.errstate(all="ignore"):
            return self.function(*arguments, **named)

    self._called = call
    return call
