"""The choice between the reply that the network wrote to a guest and those that say what the guest's words may mean."""

from collections.abc import Mapping, Sequence
from typing import Final

from taiwa.models.builtin.network import Network
from taiwa.models.builtin.order_reply import read_reply
from taiwa.models.builtin.tokenizer import Tokens

MARGIN, MOST = 1.0, 6
"""How much dearer than the cheapest meaning one may be, and how many are compared."""
CERTAIN: Final = 0.35
"""A meaning that costs no more is the only one if every other one costs half of `MARGIN` more."""
PRICE, FAULTY = 10.0, 3.0
"""What the cost of a meaning, and a fault of weight 1, count beside a log-probability."""
UNMEANT, UNMEANT_TALK = 14.0, 4.0
"""What it counts that no reading of the words gives a reply: one with lines of an order, and any other."""


def choose_reply(
    network: Network, tokens: Tokens, prompt: Sequence[int], first: str, faults: float, meant: Mapping[str, float]
) -> str:
    """Return the reply that a guest's words mean; of several the likeliest one, or `first`, which the network wrote.

    `meant` has the replies that the words may mean with what it costs to read them so, and `faults` is the weight of what
    speaks against `first`. The network is asked only where the words leave a choice.
    """
    if not meant:
        return first
    least = min(meant.values())
    near = {text: cost for text, cost in meant.items() if cost <= least + MARGIN}
    if near.keys() == {first}:
        return first
    if least <= CERTAIN and sum(cost <= least + MARGIN / 2 for cost in near.values()) == 1:
        return min(near, key=lambda text: near[text])
    costs = {text: PRICE * near[text] for text in sorted(near, key=lambda text: near[text])[:MOST]}
    unmeant = UNMEANT if read_reply(first).lines else UNMEANT_TALK
    costs.setdefault(first, PRICE * least + unmeant + FAULTY * faults)
    found = {text: _log_probability(network, tokens, prompt, text) - cost for text, cost in costs.items()}
    return max(found, key=lambda text: found[text])


def _log_probability(network: Network, tokens: Tokens, prompt: Sequence[int], text: str) -> float:
    written = tokens.encode(text.rstrip())
    if not written or len(prompt) + len(written) > network.context:
        return float("-inf")
    return float(network.log_probabilities(prompt, written).sum())
