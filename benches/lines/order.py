"""The output type of the jobs."""

from pydantic import BaseModel

__all__ = ["Order"]


class Order(BaseModel):
    """An order."""

    drink: str
    cups: int
