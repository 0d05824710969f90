"""Preprocessor of mdBook: converts links to files outside docs/ to links into the repository.

The address is taken from BOOK_REPOSITORY, such as https://github.com/OWNER/REPOSITORY/blob/v0.1.0. By default, the
links lead to the files of this working copy.
"""

import json
import os
import posixpath
import re
import sys
from pathlib import Path

LINK = re.compile(r"(\]\(|^\[[^\]]+\]:\s+)(\.\./[^)\s]+)", re.MULTILINE)

# Folder of the pages in the repository.
PAGES = "docs"


def converted(content: str, page: str, base: str) -> str:
    """Converts the links of a page. One that leads to another page stays as it is."""
    folder = posixpath.dirname(posixpath.join(PAGES, page))

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[2]))
        return match[0] if target.startswith(f"{PAGES}/") else f"{match[1]}{base}/{target}"

    return LINK.sub(link, content)


def convert(value: object, base: str) -> None:
    """Converts the content of every chapter in the tree."""
    if isinstance(value, list):
        for item in value:
            convert(item, base)
    elif isinstance(value, dict):
        if isinstance(value.get("content"), str):
            value["content"] = converted(value["content"], value.get("path") or "", base)
        for item in value.values():
            convert(item, base)


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        return
    base = os.environ.get("BOOK_REPOSITORY", Path.cwd().as_uri())
    _, book = json.load(sys.stdin)
    convert(book, base)
    json.dump(book, sys.stdout)


main()
