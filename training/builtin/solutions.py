"""The table of solution sentences: which sentences begin the training solutions, and the forms of the calculations after them."""

import re
from collections import Counter
from itertools import islice
from pathlib import Path

from taiwa.models.builtin.dimension_check import read_quantities
from taiwa.models.builtin.name_check import NAMED
from taiwa.models.builtin.word_problem_check import NUMBERS, ONCE, form_of, is_repeated, known_numbers
from training.builtin.corpus import samples

__all__ = ["write"]

SEED, DRAWN, LEAST_SHARE = -2, {"quantities": 30_000, "everyday": 8_000}, 0.01
"""A number is listed for a sentence if at least this share of its solutions uses it without the question stating it."""
ENOUGH = 20
"""The number of solutions from which it follows that a sentence never uses a number more often than it is given."""
MOST_FORMS = 12
"""The highest number of forms listed for a sentence; a sentence with more accepts any form."""
BEGINNING = re.compile(r"([^\n<]+)\n<<calculator: ([^>\n]*)>>")


def write(path: Path) -> None:
    """Write a line per sentence: its forms, the unstated numbers, and whether each given number is used once."""
    forms: dict[str, set[str]] = {}
    constants: dict[str, Counter[str]] = {}
    drawn: Counter[str] = Counter()
    repeated: Counter[str] = Counter()
    for domain, count in DRAWN.items():
        for _, sample in islice(samples(SEED, domain), count):
            first = sample.text.partition("\n")[0]
            if sample.task != "solve" or first.startswith("<<") or NAMED.match(first):
                continue
            found = BEGINNING.match(sample.text)
            forms.setdefault(first, set()).add(form_of(found[2]) if found else "")
            own = constants.setdefault(first, Counter())
            if not sample.prompt.isascii():  # the numbers in it are read in another way
                continue
            drawn[first] += 1
            if found is not None and read_quantities(sample.prompt).mentions:
                repeated[first] += is_repeated(sample.prompt, found[2], NUMBERS.findall(first))
                own.update({*NUMBERS.findall(found[2])} - known_numbers(sample.prompt))
    rows = (
        f"{first}\t{'|'.join(sorted(forms[first])) if len(forms[first]) <= MOST_FORMS else '*'}"
        f"\t{' '.join(sorted((each for each, times in constants[first].items() if times >= LEAST_SHARE * drawn[first]), key=float))}"
        f"\t{ONCE if drawn[first] >= ENOUGH and repeated[first] <= LEAST_SHARE * drawn[first] else ''}\n"
        for first in sorted(forms)
    )
    path.write_text("".join(rows), "utf-8")
