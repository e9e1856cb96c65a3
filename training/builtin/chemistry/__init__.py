"""Chemistry questions with worked answers: stoichiometry, molar masses and composition."""

from collections.abc import Mapping

from training.builtin.chemistry.astray import astray
from training.builtin.chemistry.needing import from_grams, needed, needed_mass
from training.builtin.chemistry.reacting import coefficient, product_mass, product_moles
from training.builtin.chemistry.textbook import arithmetic, balancing, given_equation, solution
from training.builtin.chemistry.unknown import unknown
from training.builtin.chemistry.weighing import composition, molar, moles_in, share, weight
from training.builtin.samples import Share

__all__ = ["SHARES"]

SHARES: Mapping[str, Share] = {
    "coefficient": Share(16, coefficient),
    "product": Share(22, product_moles),
    "product mass": Share(11, product_mass),
    "astray": Share(3, astray),
    "needed": Share(4, needed),
    "needed mass": Share(4, needed_mass),
    "grams": Share(2, from_grams),
    "molar mass": Share(7, molar),
    "weight": Share(9, weight),
    "composition": Share(6, composition),
    "moles": Share(3, moles_in),
    "percent": Share(12, share),
    "balance": Share(4, balancing),
    "equation": Share(6, given_equation),
    "solution": Share(1.5, solution),
    "arithmetic": Share(2.5, arithmetic),
    "unknown": Share(6, unknown),
}
"""The kinds of questions and their weights."""
