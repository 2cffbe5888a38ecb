"""Collect the pages of the site in `build/docs`, and write its configuration: `make site`.

Pages of the repository's root become pages of the site; links to source files become plain code, as the site has none.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import ramet

HERE = Path(__file__).parent
ROOT = HERE.parent
TARGET = ROOT / "build" / "docs"
ROOT_PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)#\s]+)(#[^)]*)?\)")


def rewritten(text: str, depth: int) -> str:
    """Text whose links out of `docs/` lead to a page of the site, or are only a name."""

    def replaced(match: re.Match[str]) -> str:
        label, path, anchor = match[1], match[2], match[3] or ""
        if path in ROOT_PAGES:
            return f"[{label}]({'../' * depth}{path.lower()}{anchor})"
        if (HERE / path).exists():
            return match[0]
        return label if label.startswith("`") else f"{label} (`{path}`)"

    return LINK.sub(replaced, text)


def main() -> None:
    shutil.rmtree(TARGET, ignore_errors=True)
    shutil.copytree(HERE, TARGET, ignore=shutil.ignore_patterns("*.py", "snippets", "__pycache__"))
    for page in TARGET.rglob("*.md"):
        page.write_text(rewritten(page.read_text(), len(page.relative_to(TARGET).parts) - 1))
    for name in ROOT_PAGES:
        text = (ROOT / name).read_text().replace("](docs/", "](").replace("](src/", "](../src/")
        (TARGET / name.lower()).write_text(rewritten(text, 0))
    settings = (ROOT / "zensical.toml").read_text().replace("VERSION", ramet.__version__)
    more = ", ".join(f'"{name.lower()}"' for name in ROOT_PAGES)
    settings = settings.replace("\n]\n", f'\n  {{ "Project" = [{more}] }},\n]\n', 1)
    (ROOT / "build" / "zensical.toml").write_text(settings)


if __name__ == "__main__":
    main()
