"""Compiled kernels: NumPy arrays in, NumPy arrays out, and no Spark.

Every kernel is compiled by Numba for one explicit type signature when it is called for the first
time, and cached on disk, so that a fresh Python worker loads machine code, of what it calls alone,
instead of compiling. Kernels run without Python's lock. None of them uses ``fastmath``: sums
are taken in a fixed order, so that every machine gets the same digits. A slow, obvious reference of
each kernel lives in the tests.
"""

from __future__ import annotations

from anonspark.kernels.machine_code import keep_machine_code

keep_machine_code()
