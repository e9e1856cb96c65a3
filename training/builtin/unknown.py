"""Questions about compounds that do not exist, to measure whether the model says that it does not know them.

Names and wordings differ from those of the training: they are made here, from other parts.
"""

import json
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from random import Random

__all__ = ["REFUSAL", "SEED", "known_names", "questions", "refused", "write"]

SEED = 9_000_011
"""A seed that no training uses."""
REFUSAL = "I do not know the formula of "
STEMS = "brast frel gom hudr jant kelv lurm morv nolp ost pelm quar rusp skav trell ulm varn wist xel yarb zond".split()
MIDDLES = "a ae e i io o u ari eno ila oba uri".split()
SALTS, ACIDS, METALS = ("ate", "ite", "ide"), ("ic", "ous"), ("ium", "on", "um")
CARBONS = ("ane", "ene", "anol", "anone", "amine", "anal", "oside", "ylene")
FRAMES = (
    "What would {amount} moles of {name} weigh?",
    "I have {amount} mol of {name} here. Its mass in grams?",
    "Give the molar mass of {name}.",
    "For {name}, tell me what one mole comes to on the scales.",
    "In {name}, which percentage of the mass is oxygen?",
    "My flask holds {amount} g of {name}: how many moles are these?",
    "how heavy is a mole of {name}",
    "Somebody weighs out {amount} grams of {name} and wonders about the number of moles. What is it?",
    "What share of {name} by mass is carbon?",
    "Please work out the formula weight of {name}",
)


def questions(count: int, taken: Set[str], seed: int = SEED) -> Iterator[Mapping[str, str]]:
    """Draw questions, each with its made-up name. Names are unique and not in `taken`."""
    random = Random(seed)
    met = {each.casefold() for each in taken}
    found = 0
    while found < count:
        name = _name(random)
        if name in met:
            continue
        met.add(name)
        asked = random.choice(FRAMES).format(name=name, amount=random.choice(("2", "3.5", "12", "40", "0.25")))
        yield {"id": f"unknown-{found + 1}", "question": asked, "answer": "unknown", "kind": "unknown", "name": name}
        found += 1


def _name(random: Random) -> str:
    stem = random.choice(STEMS) + random.choice(MIDDLES) + random.choice(STEMS)
    other = random.choice(STEMS) + random.choice(MIDDLES)
    return random.choice(
        (
            f"{stem}{random.choice(CARBONS)}",
            f"{stem}{random.choice(METALS)} {random.choice(('oxide', 'chloride', 'sulfate', 'nitrate'))}",
            f"{random.choice(('sodium', 'calcium', 'iron(III)', 'ammonium'))} {stem}{random.choice(SALTS)}",
            f"{stem}{random.choice(ACIDS)} acid",
            f"{other}-{stem}{random.choice(CARBONS)}",
            f"{stem}ite",
        )
    )


def known_names() -> frozenset[str]:
    """Return the names of all substances in the training data, in lower case."""
    from taiwa.tools.compound_names import substances

    return frozenset(name.casefold() for each in substances().values() for name in each.names)


def write(path: Path, count: int) -> None:
    """Write the questions as rows for `taiwa eval reason`; no numeric answer is correct."""
    rows = (json.dumps(row) for row in questions(count, known_names()))
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")


def refused(text: str, answer: str) -> bool:
    """Return true if a text says that the formula is unknown and gives no number."""
    return text.strip().startswith(REFUSAL) and not answer
