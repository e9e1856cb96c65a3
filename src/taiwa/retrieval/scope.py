"""Which indexes a caller of a server may search, and for which principals."""

from dataclasses import dataclass
from pathlib import Path

from taiwa.retrieval.index import Library


@dataclass(frozen=True, slots=True)
class IndexScope:
    """The indexes of one caller.

    - `owner`: whose own ones they are; "" is the command line.
    - `served`: names of further ones; None stands for all of the command line, which only its own owner gets.
    - `uploads`: the folder of uploaded documents. `principals`: for whom documents are searched beside those that an app names.
    """

    owner: str = ""
    served: tuple[str, ...] | None = None
    uploads: str = ""
    principals: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether it is that of the command line itself."""
        return not self.owner and self.served is None

    def names(self, library: Library) -> tuple[str, ...]:
        """Return the names of the indexes."""
        own = library.names(self.owner)
        if self.served is None:
            return own
        there = set(library.names(None))
        uploaded = (name for name in own if self.has_uploads(library.index(name).root))
        return tuple(dict.fromkeys([*(name for name in self.served if name in there), *uploaded]))

    def has_uploads(self, root: str) -> bool:
        """Whether a folder is one of uploaded documents."""
        return bool(self.uploads and root) and Path(root).is_relative_to(self.uploads)
