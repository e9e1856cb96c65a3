"""Make a model's text about documents safe to show."""

import re

from taiwa.kernel.text import CONTROL

TARGET = r"\((?P<to>(?:[^()\s]|\([^()]*\))*)(?:[^()]|\([^()]*\))*\)"

IMAGE = re.compile(rf"!\[(?P<words>[^\]\[]*)\](?:{TARGET}|\[[^\]]*\])")

LINK = re.compile(rf"(?<!!)\[(?P<words>[^\]\[]*)\]{TARGET}")

URL = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]{1,20}://|www\.|data:|javascript:|mailto:)[^\s<>\"'）」』】\])]*", re.IGNORECASE
)

CITATION_NUMBER = re.compile(r"[\[【［]\s*(?:\d{1,3}(?:\s*[,、，-]\s*\d{1,3})*)\s*[\]】］]")

TAG = re.compile(r"<(?=[a-zA-Z/!|])")

REMOVED = "[…]"

PUNCTUATION = ".,;:!?。、，；：！？"


def safe_line(text: str, sources: str = "") -> str:
    """Make a model's text about documents safe to show on one line.

    Images, tags, invisible characters, numbers that look like citations, and URLs that the sources do not contain are removed.

    >>> safe_line("See ![x](https://a.example/?q=1) [here](https://b.example) [2] now", "go to https://b.example")
    'See x here (https://b.example) now'
    """
    line = " ".join(CONTROL.sub("", text).split())
    line = IMAGE.sub(lambda image: image["words"], line)
    line = LINK.sub(lambda link: f"{link['words']} ({link['to']})" if link["to"] else link["words"], line)
    line = URL.sub(lambda url: url[0] if url[0].rstrip(PUNCTUATION) in sources else REMOVED, line)
    return " ".join(TAG.sub("‹", CITATION_NUMBER.sub("", line)).split())
