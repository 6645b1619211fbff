"""Learners of scikit-learn, in threads."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from anonspark.engine.local.learning import train


def test_threads_that_predict_at_once_do_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    """Each call of scikit-learn replaces the filters of warnings of the whole process."""
    features = np.random.default_rng(1).random((100, 3))
    examples = pa.table({"features": list(features), "label": np.round(features[:, 0])})
    models = train(examples, 2)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for _ in threads.map(
                lambda _: [one.predict(features) for one in models.values()], range(40)
            ):
                pass
    finally:
        sys.setswitchinterval(interval)
    assert not recwarn.list
