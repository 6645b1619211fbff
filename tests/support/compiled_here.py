"""A plugin of pytest: kernels that Numba compiles, in the place of those that were built."""

from __future__ import annotations

from anonspark.kernels import compiling

compiling.built = lambda: None
