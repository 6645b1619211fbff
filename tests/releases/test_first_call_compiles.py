"""Without the package's machine code Numba compiles what a run calls; the release is the same.

One model with few kernels. At night, because compiling takes half a minute of processor time:
``unit/kernels/test_compiling.py`` tests by day that a kernel compiles when it is called. All
kernels and models are compiled by ``systems/test_kernels_compiled_here.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from helpers import configuration_file, write_table
from places import skip_or_fail

from anonspark.kernels.built import built

RUN = """if True:
    import sys
    from anonspark.kernels import compiling
    compiling.machine_code = lambda symbol: None
    from anonspark.cli.application import main
    code = main(["run", sys.argv[1]])
    assert "numba" in sys.modules
    called = [one for one in compiling.KERNELS if one._called is not None]
    assert called and all(one._called is one._compiled for one in called)
    print(len(called))
    sys.exit(code)
"""


def files_of(release: Path) -> dict[str, Any]:
    manifest = json.loads((release / "manifest.json").read_text())
    files = {one["path"]: one["sha256"] for one in manifest["files"]}
    return {path: digest for path, digest in files.items() if path.startswith("data/")}


@pytest.mark.night
def test_a_release_by_kernels_that_are_compiled_when_they_are_called(
    cli: Cli, tmp_path: Path
) -> None:
    if not built():
        skip_or_fail("make kernels builds what it is compared with")
    age, sex = [20 + i % 37 for i in range(300)], ["f", "m", "m"] * 100
    write_table(tmp_path / "input.parquet", {"age": age, "sex": sex, "ill": ["a", "b"] * 150})
    attributes = {
        "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10]}},
        "ill": "sensitive",
    }
    sections: dict[str, Any] = {
        "attributes": attributes,
        "model": "full-domain",
        "execution": {"seed": 2**60 + 1},
    }
    path = configuration_file(tmp_path, **sections)
    cli.ends(0, "run", path)
    expected = files_of(tmp_path / "release")
    (tmp_path / "release").rename(tmp_path / "with machine code")
    done = subprocess.run([sys.executable, "-c", RUN, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Hashes of records, names of classes, and those of the model.
    assert int(done.stdout.split()[-1]) > 5
    assert files_of(tmp_path / "release") == expected != {}
