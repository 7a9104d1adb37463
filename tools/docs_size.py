"""Count the words, pages and links of the documentation.

    python tools/docs_size.py            a line per directory, and the totals
    python tools/docs_size.py --pages    also a line per page, longest first

A word is what stands between blanks, as `wc -w` counts: prose, tables and code alike. Pages that are written when the
site is built (the commands' help, the HTTP interface) count as their sources.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.doc_pages import page_name, without_blocks  # noqa: E402

LINK = re.compile(r"\]\(([^)\s]+)\)")


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the words, pages and links of the documentation.")
    parser.add_argument("--pages", action="store_true", help="also print a line per page")
    options = parser.parse_args()
    pages = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts]
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in pages}
    if options.pages:
        for page in sorted(words, key=words.__getitem__, reverse=True):
            print(f"{words[page]:7,}  {page_name(page)}")
        print()
    directories: Counter[str] = Counter()
    for page, count in words.items():
        directories[page.parent.relative_to(ROOT).as_posix()] += count
    for directory, count in sorted(directories.items()):
        print(f"{count:7,}  {directory}")
    print(
        f"{sum(words.values()):7,} words on {len(pages)} pages; {_links(pages)}; README.md {_readme_lines()} lines"
    )


def _links(pages: list[Path]) -> str:
    """Return the numbers of links to pages and to other sites."""
    targets = [target for page in pages for target in LINK.findall(without_blocks(page))]
    elsewhere = sum(target.startswith(("http:", "https:")) for target in targets)
    return f"{len(targets) - elsewhere:,} links between pages, {elsewhere} to other sites"


def _readme_lines() -> int:
    return len((ROOT / "README.md").read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    main()
