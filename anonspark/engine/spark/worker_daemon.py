"""Run the parent of an embedded Spark's Python workers, with modules imported once for all."""

import gc

import numpy as np
import pyarrow as pa
from pyspark.daemon import manager

from anonspark.engine.spark import aggregation
from anonspark.engine.values import record_tasks

__all__ = ["aggregation", "record_tasks"]

if __name__ == "__main__":
    # With its first array pyarrow imports pandas, which takes most of the time.
    pa.array(np.zeros(1))
    gc.freeze()
    manager()  # type: ignore[no-untyped-call]
