"""Check citations: whether a sentence of a passage supports a claim.

A claim is supported if it restates the sentence: it has the words of the sentence, without a gap, from its beginning to the
end of a clause that is at least half of it, and in their order but for one part that may come first; only its subject may come from
a heading. Function words, inflections, and the spelling of numbers may differ. A claim in other words may be true as well, but only
understanding could tell: it is shown as the model's own words (decision 0048).
"""

from itertools import takewhile

from taiwa.flows.ask.words import NEGATION, Token, tokens

MIN_WORDS = 3
"""What counts in the shortest claim: `12 days` says nothing by itself, though a list may contain it."""


def supports(claim: str, sentence: str, heading: str = "") -> bool:
    """Whether a claim restates a sentence that stands under a heading.

    >>> supports("Ten days are paid.", "10 days are paid, and more on request."), supports("90 days are paid.", "10 days are paid.")
    (True, False)
    >>> supports("It is open on Mondays.", "Closed on Mondays."), supports("犬は入れます。", "犬は入れません")
    (False, False)
    >>> supports("The late fee is 20 cents per item.", "20 cents per item.", "Late fees"), supports("A card costs 20 cents.", "20 cents.", "Fees")
    (True, False)
    """
    wanted, given = [token.text for token in tokens(claim)], tokens(sentence)
    starts = [*(at for at, token in enumerate(given) if token.begins), len(given)]
    clauses = [
        tuple(token.text for token in given[start:end])
        for start in starts
        for end in range(start + 1, len(given) + 1)
        if _is_statement(given, start, end, next(at for at in starts if at >= end))
    ]
    above = {token.text for token in tokens(heading) if token.text != NEGATION}
    subject = len([*takewhile(lambda word: word in above and not word[0].isdigit(), wanted)])
    return len(wanted) >= MIN_WORDS and any(
        _says(clause, tuple(wanted[at:])) for at in range(subject + 1) for clause in clauses
    )


def _is_statement(given: list[Token], start: int, end: int, stop: int) -> bool:
    """Whether the words up to the end of a clause are most of their sentence, which does not continue with a negation."""
    if end == stop:
        return True
    return given[end - 1].ends and given[end].text != NEGATION and 2 * (end - start) >= stop - start


def _says(clause: tuple[str, ...], claim: tuple[str, ...]) -> bool:
    """Whether a claim has the words of a clause, of which one part may have moved to the front if that swaps no numbers."""
    if len(clause) != len(claim):
        return False
    moved = len(clause) if sum(word[0].isdigit() for word in clause) < 2 else 1
    return any(clause[at:] + clause[:at] == claim for at in range(moved))
