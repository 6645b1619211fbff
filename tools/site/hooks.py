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
    "SECURITY.md": "reporting.md",
    "CONTRIBUTING.md": "contributing.md",
    "data/README.md": "data.md",
}
"""Pages of the repository, and what they are called on the site."""

NOTEBOOKS = REPOSITORY / "build" / "notebooks"
"""Notebooks of examples/ with what they print; make site runs them."""

STYLE = Path(__file__).with_name("site.css")

EXAMPLES = REPOSITORY / "build" / "gallery"
"""Reports that pages link to; make site makes them."""

RESEARCH = (
    *("algorithms", "architecture", "extending", "inference", "measured", "models"),
    *("performance", "reproduction", "rules"),
)
"""Pages of the tab Research, which the search shows after those for users."""

SEARCH: dict[str, dict[str, Any]] = {
    "api.md": {"boost": 3},
    "choosing-k-and-model.md": {"boost": 10},
    "first-release.md": {"boost": 3},
    "install.md": {"boost": 4},
    "operations.md": {"boost": 6},
    "report.md": {"boost": 12},
    "roles-and-criteria.md": {"boost": 12},
    **{f"{page}.md": {"boost": 0.3} for page in RESEARCH},
}
"""How much the search prefers a page. Others have 1."""

_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")

_ROLE = re.compile(r":(?:meth|func|class|mod|attr):(?=<code>)")


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
    files.append(File.generated(config, STYLE.name, content=STYLE.read_text(encoding="utf-8")))
    for example in sorted(EXAMPLES.glob("*.html")):
        name = f"{EXAMPLES.name}/{example.name}"
        files.append(File.generated(config, name, abs_src_path=str(example)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Lead links out of docs/ to the pages that were added, and say how the search weighs it."""
    page.meta.setdefault("search", SEARCH.get(page.file.src_uri, {}))
    generated = page.file.generated_by is not None
    # The repository holds no report, so its pages cannot link to one.
    for example in EXAMPLES.glob("*.html"):
        place = example.relative_to(REPOSITORY / "build").as_posix()
        markdown = markdown.replace(f"`build/{place}`", f"[{example.stem}]({place})")
    return markdown if generated else _moved(markdown, Path("docs"))


def on_page_content(html: str, **_: Any) -> str:
    """Remove the roles of docstrings, which stand before code."""
    return _ROLE.sub("", html)


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
