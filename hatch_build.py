"""What a wheel has beside the sources: the machine code of the kernels, and the index's page.

An installation from an index, or with pip from a clone, so needs no compiler when it runs. Where it
cannot be built, the wheel has the sources alone, and Numba compiles them: anonspark[numba].
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"(!\[[^]]*\]\()(?=[\w.])(?!https?:)")
_LINK = re.compile(r"(\]\()(?=[\w.])(?!https?:)")


class MachineCode(BuildHookInterface):
    """Build it, and say that the wheel is for one Python and one architecture."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it before the wheel; a clone that is installed to be edited builds its own."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from anonspark.kernels.building import build
        from anonspark.kernels.built import folder_of_package

        try:
            built = build(folder_of_package())
        except OSError as error:
            self.app.display_warning(f"{error}\nThe wheel has none: anonspark[numba] compiles it.")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for file in built:
            build_data["force_include"][str(file)] = f"anonspark/kernels/_built/{file.name}"


class IndexPage(MetadataHookInterface):
    """Give the index README.md with absolute links: it shows no other file of the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Let links and pictures lead to this version at ``project.urls.Source``."""
        source = f"{metadata['urls']['Source']}/{{}}/v{metadata['version']}/"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = _PICTURE.sub(rf"\g<1>{source.format('raw')}", text)
        text = _LINK.sub(rf"\g<1>{source.format('blob')}", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
