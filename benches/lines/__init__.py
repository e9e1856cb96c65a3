"""Lines of code for the same jobs with taiwa and with other libraries; each job is run against a local server first."""

__all__ = ["main"]


def main() -> None:
    """Run and count all jobs."""
    from benches.lines.__main__ import main as count

    count()
