"""Calling a function of another package from a kernel: by its address, as C calls it."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import Any

from anonspark.kernels.compiling import NUMBA_PATCHES

LEAST_ADDRESS = 4096
"""No function lies below. A smaller number is a constant of a kernel."""


class AddressCall:
    """The call in the body of a kernel: an address, six whole numbers, then a real number.

    The function there takes the numbers without its address, and returns a whole number.
    """

    @cached_property
    def _numba_type_(self) -> Any:
        # What Numba asks where the body of a kernel names it.
        return importlib.import_module(NUMBA_PATCHES).type_of_address_call()


call_address = AddressCall()
