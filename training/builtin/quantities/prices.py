"""Currencies, prices and their notation."""

from training.builtin.quantities.telling import Ask, Slots, Teller
from training.builtin.quantities.working import Problem

__all__ = ["SHARE", "Money", "made", "pieces"]

MONEYS = {
    "dollars": ("${}", "${}", "${}", "{} dollars", "{} dollars", "US${}", "{} USD"),
    "euros": ("€{}", "{} €", "{} euros", "{} euros", "{} EUR"),
    "pounds": ("£{}", "£{}", "{} pounds"),
    "yen": ("¥{}", "{} yen", "{} yen"),
    "rupees": ("Rs {}", "₹{}", "{} rupees", "Rs. {}"),
    "yuan": ("{} yuan", "{} yuan"),
    "won": ("{} won",),
    "pesos": ("{} pesos",),
    "francs": ("{} francs",),
    "cents": ("{} cents",),
    "kroner": ("{} kroner",),
    "shillings": ("{} shillings",),
    "rand": ("{} rand",),
    "crowns": ("{} crowns",),
    "coins": ("{} coins", "{} gold coins"),
}
WEIGHTS = (12, 5, 4, 3, 4, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1)
WHOLE_ONLY = ("yen", "cents", "won", "coins")
SHARE = "[%| %|%| percent| per cent|%]"


class Money:
    """A currency with a notation that stays the same throughout a question."""

    def __init__(self, teller: Teller) -> None:
        self.teller = teller
        self.name = teller.random.choices(list(MONEYS), WEIGHTS)[0]
        self._form = teller.random.choice(MONEYS[self.name])

    def price(self, low: int, high: int) -> str:
        """Draw a price, with hundredths in most currencies."""
        kind = self.teller.random.randrange(10)
        if self.name in WHOLE_ONLY or kind < 6:
            return str(self.teller.whole(low, high))
        if kind < 8:
            return f"{self.teller.whole(low, high)}.{self.teller.pick('50', '25', '75', '99', '20', '5', '90')}"
        return f"{self.teller.random.uniform(low, high):.2f}"

    def say(self, number: str) -> str:
        """Write an amount of money."""
        said = self.teller.measure(number) if self._form.startswith("{}") else number
        if number.isdigit() and int(number) >= 1_000 and self.teller.chance(0.4):
            said = f"{int(number):,}"
        return self._form.format(said)


def made(teller: Teller, ask: Ask, slots: Slots, work: tuple[str, str], unit: str) -> Problem:
    """Return a problem with one step; the counted noun is never misspelt."""
    return Problem(teller.ask(ask, slots), (work,), unit, tuple(unit.split()))


def pieces(teller: Teller, low: int = 2, high: int = 24) -> tuple[str, str]:
    """Draw a quantity and its wording before a noun."""
    number = str(teller.whole(low, high))
    said = teller.number(number)
    return number, number if said.endswith(" of") else said
