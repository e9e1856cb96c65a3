"""How many lines the same jobs take with taiwa and with others; each is run against a server on this machine before it is counted."""

__all__ = ["main"]


def main() -> None:
    """Run and count all jobs."""
    from benches.lines.__main__ import main as count

    count()
