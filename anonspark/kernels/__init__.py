"""Compiled kernels: NumPy arrays in, NumPy arrays out, and no Spark.

Every kernel is compiled by Numba for one explicit type signature when it is called for the first
time, and cached on disk, so that a fresh Python worker loads machine code, only of what it calls,
instead of compiling. Until then not even Numba is loaded. Kernels run without Python's lock. None
of them uses ``fastmath``: sums are taken in a fixed order, so that every machine gets the same
digits. A slow, obvious reference of each kernel lives in the tests.
"""
