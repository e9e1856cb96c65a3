"""Calls as strict function calling writes them."""

from typing import Literal

from taiwa import tool
from taiwa.tools.chemical_formulas import molar_mass


@tool
def search(query: str, limit: int = 10, place: str | None = None, order: Literal["new", "old"] = "new") -> str:
    """Search."""
    return f"{query}/{limit}/{place}/{order}"


def test_null_is_read_as_left_out() -> None:
    said = search.call({"query": "x", "limit": None, "place": None, "order": None})

    assert said == search.call({"query": "x"})
    assert molar_mass.call({"formula": "H2O", "weights": None}) == molar_mass.call({"formula": "H2O"})
