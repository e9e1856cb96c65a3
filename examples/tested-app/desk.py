"""A lost-and-found desk: what a visitor says becomes a report, and a second visitor's words find it.

python examples/tested-app/desk.py "I left a black umbrella on the 8 o'clock train"
pytest examples/tested-app
"""

import sys
from dataclasses import dataclass, field
from typing import Literal

import taiwa


@dataclass(frozen=True)
class Report:
    kind: Literal["lost", "found"]
    thing: str
    colour: str | None = None
    place: str | None = None


@dataclass
class Desk:
    """The reports of a day. The client is an argument, so that a test passes one whose answers it knows."""

    client: taiwa.Client
    reports: list[Report] = field(default_factory=list[Report])

    def take(self, text: str) -> tuple[Report, list[Report]]:
        """Write down what is said, and return it with the reports of the other kind that fit.

        Raises:
            taiwa.TaiwaError: the text could not be read; nothing was written down.
        """
        report = self.client.extract(Report, text)
        fitting = [each for each in self.reports if each.kind != report.kind and each.thing == report.thing]
        self.reports.append(report)
        return report, fitting


if __name__ == "__main__":
    with taiwa.exit_on_error(), taiwa.Client() as client:
        desk = Desk(client)
        for line in sys.argv[1:] or ["I left a black umbrella on the train", "Somebody handed in an umbrella"]:
            taken, matches = desk.take(line)
            print(taken, *matches, sep="\n  fits ")
