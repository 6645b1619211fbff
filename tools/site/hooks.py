"""What the documentation site shows of files that lie outside of docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.plugins import event_priority
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

NOTEBOOKS = REPOSITORY / "build" / "notebooks"
"""Notebooks of examples/ with what they print; make site runs them."""

_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")


# Before the plugin that renders notebooks looks at the files.
@event_priority(100)
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere."""
    for source, name in PAGES.items():
        text = (REPOSITORY / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=_moved(text, Path(source).parent)))
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        name = f"{NOTEBOOKS.name}/{notebook.name}"
        files.append(File(name, str(NOTEBOOKS.parent), config.site_dir, config.use_directory_urls))
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
        for inside, shown in (("docs/", ""), ("examples/", "notebooks/")):
            if path.startswith(inside):
                return shown + path.removeprefix(inside)
        return PAGES.get(path, found[1])

    return _LINK.sub(link, markdown)
