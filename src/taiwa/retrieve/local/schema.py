"""The tables of the file that keeps indexes.

`generation` counts an index's transactions, and `change` has the random stamp of each: what was derived from the tables
says which one it saw, so a file that was put back from a copy is told from its own future. Numbers of documents and
passages are never used again, so what was derived cannot take a new row for an old one.
"""

from taiwa.sqlite import Kind, Migration

__all__ = ["LIBRARY"]

MIGRATIONS: tuple[Migration, ...] = (
    (
        """CREATE TABLE shelf(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL UNIQUE,
            root TEXT NOT NULL,
            analyzer TEXT NOT NULL,
            generation INTEGER NOT NULL,
            stamp BLOB NOT NULL,
            at_us INTEGER NOT NULL) STRICT""",
        # The names in an audience are JSON, sorted: equal audiences are one row.
        """CREATE TABLE audience(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            shelf INTEGER NOT NULL REFERENCES shelf(seq) ON DELETE CASCADE,
            clauses TEXT NOT NULL,
            UNIQUE(shelf, clauses)) STRICT""",
        """CREATE TABLE document(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            shelf INTEGER NOT NULL REFERENCES shelf(seq) ON DELETE CASCADE,
            path TEXT NOT NULL,
            title TEXT NOT NULL,
            digest BLOB NOT NULL,
            size INTEGER NOT NULL,
            modified_ns INTEGER NOT NULL,
            reader TEXT NOT NULL,
            audience INTEGER NOT NULL REFERENCES audience(seq),
            access TEXT,
            problem TEXT NOT NULL,
            passages INTEGER NOT NULL,
            characters INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            at_us INTEGER NOT NULL,
            UNIQUE(shelf, path)) STRICT""",
        "CREATE INDEX document_generation ON document(shelf, generation)",
        "CREATE INDEX document_audience ON document(audience)",
        """CREATE TABLE version(
            seq INTEGER PRIMARY KEY,
            document INTEGER NOT NULL REFERENCES document(seq) ON DELETE CASCADE,
            digest BLOB NOT NULL,
            size INTEGER NOT NULL,
            at_us INTEGER NOT NULL) STRICT""",
        "CREATE INDEX version_document ON version(document)",
        """CREATE TABLE passage(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            document INTEGER NOT NULL REFERENCES document(seq) ON DELETE CASCADE,
            start INTEGER NOT NULL,
            page INTEGER NOT NULL,
            heading TEXT NOT NULL,
            text TEXT NOT NULL) STRICT""",
        "CREATE INDEX passage_document ON passage(document)",
        """CREATE TABLE gone(
            shelf INTEGER NOT NULL REFERENCES shelf(seq) ON DELETE CASCADE,
            document INTEGER NOT NULL,
            generation INTEGER NOT NULL) STRICT""",
        "CREATE INDEX gone_generation ON gone(shelf, generation)",
        """CREATE TABLE change(
            shelf INTEGER NOT NULL REFERENCES shelf(seq) ON DELETE CASCADE,
            generation INTEGER NOT NULL,
            stamp BLOB NOT NULL,
            PRIMARY KEY(shelf, generation)) STRICT, WITHOUT ROWID""",
        """CREATE TABLE feedback(
            seq INTEGER PRIMARY KEY,
            shelf INTEGER NOT NULL REFERENCES shelf(seq) ON DELETE CASCADE,
            query TEXT NOT NULL,
            passage TEXT NOT NULL,
            good INTEGER NOT NULL,
            person TEXT NOT NULL,
            at_us INTEGER NOT NULL) STRICT""",
        "CREATE INDEX feedback_shelf ON feedback(shelf)",
        # A vector is bytes of -127 to 127 and what one of them is worth.
        """CREATE TABLE vector(
            passage INTEGER NOT NULL REFERENCES passage(seq) ON DELETE CASCADE,
            model TEXT NOT NULL,
            scale REAL NOT NULL,
            cells BLOB NOT NULL,
            PRIMARY KEY(passage, model)) STRICT, WITHOUT ROWID""",
        """CREATE TABLE gain(
            shelf INTEGER NOT NULL REFERENCES shelf(seq) ON DELETE CASCADE,
            model TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY(shelf, model)) STRICT, WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE meaning(
            shelf INTEGER PRIMARY KEY REFERENCES shelf(seq) ON DELETE CASCADE,
            body TEXT NOT NULL) STRICT""",
    ),
)

LIBRARY = Kind(
    "library",
    0x7461696C,  # `tail`: taiwa's library
    MIGRATIONS,
    maker="a first `taiwa index FOLDER` makes one",
    mend="delete it with the folder beside it, and index again",
)
