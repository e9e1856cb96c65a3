"""The tables, as an ordered list of migrations: a store of version n has seen the first n of them.

Wide rows sit in rowid tables with a unique 16-byte hash beside (a WITHOUT ROWID table of the same rows was three times as
large). Inside the file nodes name each other by row number; a row number is never shown and is no part of a hash.
Only `seq` gives an order: the clock may go back, so the `*_us` columns (microseconds since 1970) are for showing.
"""

from taiwa.sqlite.kind import Kind, Migration

__all__ = ["APPLICATION", "MIGRATIONS", "STORE"]

APPLICATION = 0x74616977
"""`taiw`: marks the file as ours (PRAGMA application_id)."""

MIGRATIONS: tuple[Migration, ...] = (
    (
        """CREATE TABLE app(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 16),
            name TEXT NOT NULL,
            body BLOB NOT NULL) STRICT""",
        # `base` is the tip that the node's commit was put on: what undo goes back to. It is no foreign key, because
        # deleting a node would then scan the table; an ancestor is reachable whenever its descendant is.
        """CREATE TABLE node(
            seq INTEGER PRIMARY KEY,
            hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 16),
            parent INTEGER REFERENCES node(seq),
            base INTEGER,
            kind TEXT NOT NULL,
            app INTEGER NOT NULL REFERENCES app(seq),
            turns INTEGER NOT NULL,
            state BLOB NOT NULL,
            body BLOB NOT NULL,
            at_us INTEGER NOT NULL) STRICT""",
        "CREATE INDEX node_parent ON node(parent)",
        # A deleted ref keeps its row, with node NULL, so that its reflog stays whole when the name is used again.
        """CREATE TABLE ref(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL,
            node INTEGER,
            moved INTEGER NOT NULL) STRICT""",
        "CREATE UNIQUE INDEX ref_name ON ref(name) WHERE node IS NOT NULL",
        """CREATE TABLE reflog(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            ref INTEGER NOT NULL REFERENCES ref(seq) ON DELETE CASCADE,
            op TEXT NOT NULL,
            old INTEGER,
            new INTEGER,
            why TEXT NOT NULL,
            at_us INTEGER NOT NULL) STRICT""",
        "CREATE INDEX reflog_ref ON reflog(ref)",
        """CREATE TABLE run(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            ref TEXT NOT NULL,
            base INTEGER,
            node INTEGER,
            app INTEGER REFERENCES app(seq),
            status TEXT NOT NULL,
            input BLOB,
            error BLOB,
            asked INTEGER NOT NULL DEFAULT 0,
            model TEXT NOT NULL DEFAULT '',
            pid INTEGER NOT NULL,
            token TEXT NOT NULL,
            at_us INTEGER NOT NULL) STRICT""",
        "CREATE INDEX run_node ON run(node)",
        "CREATE INDEX run_open ON run(seq) WHERE status = 'open'",
        # Several entries of one place are several payments: the last one counts for resuming, all for the bill.
        """CREATE TABLE call(
            seq INTEGER PRIMARY KEY,
            run INTEGER NOT NULL REFERENCES run(seq) ON DELETE CASCADE,
            strand TEXT NOT NULL,
            place INTEGER NOT NULL,
            kind TEXT NOT NULL,
            key BLOB NOT NULL,
            answer BLOB,
            error BLOB,
            model TEXT NOT NULL,
            metered INTEGER NOT NULL,
            input INTEGER NOT NULL,
            output INTEGER NOT NULL,
            cache_read INTEGER NOT NULL,
            cache_write INTEGER NOT NULL,
            reasoning INTEGER NOT NULL,
            cost_nano INTEGER,
            price TEXT NOT NULL,
            ms INTEGER NOT NULL,
            at_us INTEGER NOT NULL) STRICT""",
        "CREATE INDEX call_run ON call(run)",
        """CREATE TABLE item(
            key BLOB PRIMARY KEY CHECK (length(key) = 16),
            status TEXT NOT NULL,
            attempts INTEGER NOT NULL,
            cost_nano INTEGER,
            result BLOB,
            at_us INTEGER NOT NULL) STRICT""",
        """CREATE TABLE snap(
            node INTEGER PRIMARY KEY REFERENCES node(seq) ON DELETE CASCADE,
            state BLOB NOT NULL) STRICT""",
        # The texts are cut into words and pairs of characters before they come here (words.py), positions are not kept.
        # For 213 KB of Japanese text this takes 61 KB; FTS5's own trigrams take 266 KB and find no word of two characters.
        # `search` itself brings the index up to date, so that a turn does not pay for it; `indexed` is the last node in it.
        "CREATE VIRTUAL TABLE search USING fts5(words, content='', columnsize=0, detail=none, tokenize='ascii')",
        "CREATE TABLE indexed(seq INTEGER NOT NULL) STRICT",
        "INSERT INTO indexed VALUES(0)",
    ),
    (
        # Who asks. What they said of acts stands in `verdict`, and what it teaches nowhere: it is worked out when it is read.
        """CREATE TABLE person(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL UNIQUE,
            body BLOB NOT NULL,
            at_us INTEGER NOT NULL) STRICT""",
        """CREATE TABLE verdict(
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            person INTEGER NOT NULL REFERENCES person(seq) ON DELETE CASCADE,
            body BLOB NOT NULL,
            at_us INTEGER NOT NULL) STRICT""",
        "CREATE INDEX verdict_person ON verdict(person)",
        """CREATE TABLE person_ref(
            ref INTEGER PRIMARY KEY REFERENCES ref(seq) ON DELETE CASCADE,
            person INTEGER NOT NULL REFERENCES person(seq) ON DELETE CASCADE) STRICT""",
        "CREATE INDEX person_ref_person ON person_ref(person)",
    ),
    (
        # Who has an open row, as in `run`.
        "ALTER TABLE item ADD COLUMN pid INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE item ADD COLUMN token TEXT NOT NULL DEFAULT ''",
    ),
)

STORE = Kind(
    "store",
    APPLICATION,
    MIGRATIONS,
    maker="a first `taiwa chat` makes one",
    mend="run `taiwa fsck`, and export what can still be read or take a copy from before",
)
