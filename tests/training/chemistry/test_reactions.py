"""The reactions: conservation holds in each, as the tool sees it, and they are drawn evenly."""

from collections import Counter
from random import Random

from taiwa.tools.compound_names import substances
from training.builtin.chemistry.reactions import balanced, drawn, reactions


def test_every_equation_balances_in_one_way() -> None:
    assert [each.text for each in reactions() if balanced(each.text).status != "solved"] == []


def test_there_are_many_and_most_parts_have_names() -> None:
    parts = [part.formula for each in reactions() for part in each.parts]
    named = [formula for formula in parts if formula in substances() and substances()[formula].names]

    assert len(reactions()) > 4_000
    assert len(named) > 0.99 * len(parts)


def test_no_kind_of_reaction_crowds_out_the_others() -> None:
    random = Random(3)
    found = Counter(drawn(random).kind for _ in range(2_000))

    assert 0.4 < found["table"] / 2_000 < 0.6
    assert len(found) > 18
    assert max(count for kind, count in found.items() if kind != "table") < 300
