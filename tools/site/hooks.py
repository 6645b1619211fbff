"""What the documentation site shows of files that lie outside of docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

REPOSITORY = Path(__file__).resolve().parents[2]

PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "data/README.md": "data.md",
}
"""Pages of the repository, and what they are called on the site."""

_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere."""
    for source, name in PAGES.items():
        text = (REPOSITORY / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=_moved(text, Path(source).parent)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Lead links out of docs/ to the pages that were added."""
    generated = page.file.generated_by is not None
    return markdown if generated else _moved(markdown, Path("docs"))


def _moved(markdown: str, folder: Path) -> str:
    """Return a page of a folder of the repository with links as they are on the site."""

    def link(found: re.Match[str]) -> str:
        target = (REPOSITORY / folder / found[1]).resolve()
        if not target.is_relative_to(REPOSITORY):
            return found[1]
        path = target.relative_to(REPOSITORY).as_posix()
        return PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else found[1])

    return _LINK.sub(link, markdown)
