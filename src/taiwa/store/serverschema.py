"""The tables of a store on a PostgreSQL server: those of `schema`, as an ordered list of migrations of their own.

Every number has 64 bits and bodies are bytes, so that one set of statements and one reader of rows serves both. `seq` orders
a node behind its parent, and the moves of one name; what several programs write at once has no order beyond that.
"""

from taiwa.postgres.kind import Kind, Migration

__all__ = ["MIGRATIONS", "STORE"]

SEQ = "seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"

MIGRATIONS: tuple[Migration, ...] = (
    (
        f"""CREATE TABLE app(
            {SEQ},
            hash bytea NOT NULL UNIQUE CHECK (length(hash) = 16),
            name text NOT NULL,
            body bytea NOT NULL)""",
        f"""CREATE TABLE node(
            {SEQ},
            hash bytea NOT NULL UNIQUE CHECK (length(hash) = 16),
            parent bigint REFERENCES node(seq),
            base bigint,
            kind text NOT NULL,
            app bigint NOT NULL REFERENCES app(seq),
            turns bigint NOT NULL,
            state bytea NOT NULL,
            body bytea NOT NULL,
            at_us bigint NOT NULL)""",
        "CREATE INDEX node_parent ON node(parent)",
        "CREATE INDEX node_app ON node(app)",
        f"CREATE TABLE ref({SEQ}, name text NOT NULL, node bigint, moved bigint NOT NULL)",
        "CREATE UNIQUE INDEX ref_name ON ref(name) WHERE node IS NOT NULL",
        f"""CREATE TABLE reflog(
            {SEQ},
            ref bigint NOT NULL REFERENCES ref(seq) ON DELETE CASCADE,
            op text NOT NULL,
            old bigint,
            new bigint,
            why text NOT NULL,
            at_us bigint NOT NULL)""",
        "CREATE INDEX reflog_ref ON reflog(ref)",
        f"""CREATE TABLE run(
            {SEQ},
            ref text NOT NULL,
            base bigint,
            node bigint,
            app bigint REFERENCES app(seq),
            status text NOT NULL,
            input bytea,
            error bytea,
            asked bigint NOT NULL DEFAULT 0,
            model text NOT NULL DEFAULT '',
            pid bigint NOT NULL,
            token text NOT NULL,
            at_us bigint NOT NULL)""",
        "CREATE INDEX run_node ON run(node)",
        "CREATE INDEX run_app ON run(app)",
        "CREATE INDEX run_ref ON run(ref)",
        "CREATE INDEX run_open ON run(seq) WHERE status = 'open'",
        f"""CREATE TABLE call(
            {SEQ},
            run bigint NOT NULL REFERENCES run(seq) ON DELETE CASCADE,
            strand text NOT NULL,
            place bigint NOT NULL,
            kind text NOT NULL,
            key bytea NOT NULL,
            answer bytea,
            error bytea,
            model text NOT NULL,
            metered bigint NOT NULL,
            input bigint NOT NULL,
            output bigint NOT NULL,
            cache_read bigint NOT NULL,
            cache_write bigint NOT NULL,
            reasoning bigint NOT NULL,
            cost_nano bigint,
            price text NOT NULL,
            ms bigint NOT NULL,
            at_us bigint NOT NULL)""",
        "CREATE INDEX call_run ON call(run)",
        """CREATE TABLE item(
            key bytea PRIMARY KEY CHECK (length(key) = 16),
            status text NOT NULL,
            attempts bigint NOT NULL,
            cost_nano bigint,
            result bytea,
            pid bigint NOT NULL DEFAULT 0,
            token text NOT NULL DEFAULT '',
            at_us bigint NOT NULL)""",
        "CREATE TABLE snap(node bigint PRIMARY KEY REFERENCES node(seq) ON DELETE CASCADE, state bytea NOT NULL)",
        # Words are cut by `words.py`; a tsvector is only their container here, and finds a word by its beginning.
        "CREATE TABLE search(node bigint PRIMARY KEY REFERENCES node(seq) ON DELETE CASCADE, words tsvector NOT NULL)",
        "CREATE INDEX search_words ON search USING gin(words)",
        # What is not indexed yet, by a trigger: turns that are written at once need not be committed in their order.
        # A `large` text has more words than a tsvector holds, stays here, and is looked through by every search.
        """CREATE TABLE fresh(
            node bigint PRIMARY KEY REFERENCES node(seq) ON DELETE CASCADE,
            large bigint NOT NULL DEFAULT 0)""",
        """CREATE FUNCTION note_fresh() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO fresh(node) VALUES(NEW.seq); RETURN NULL; END $$""",
        "CREATE TRIGGER node_fresh AFTER INSERT ON node FOR EACH ROW EXECUTE FUNCTION note_fresh()",
        # As SQLite has it, for lists of row numbers.
        """CREATE FUNCTION json_each(listed text) RETURNS TABLE(value bigint) LANGUAGE sql STABLE
            AS $$ SELECT CAST(one AS bigint) FROM json_array_elements_text(CAST(listed AS json)) AS one $$""",
        "CREATE SEQUENCE owner AS integer CYCLE",
    ),
    (
        f"CREATE TABLE person({SEQ}, name text NOT NULL UNIQUE, body bytea NOT NULL, at_us bigint NOT NULL)",
        f"""CREATE TABLE verdict(
            {SEQ},
            person bigint NOT NULL REFERENCES person(seq) ON DELETE CASCADE,
            body bytea NOT NULL,
            at_us bigint NOT NULL)""",
        "CREATE INDEX verdict_person ON verdict(person)",
        """CREATE TABLE person_ref(
            ref bigint PRIMARY KEY REFERENCES ref(seq) ON DELETE CASCADE,
            person bigint NOT NULL REFERENCES person(seq) ON DELETE CASCADE)""",
        "CREATE INDEX person_ref_person ON person_ref(person)",
    ),
)

STORE = Kind("store", "taiwa_store", MIGRATIONS, maker="a first `taiwa chat` makes one")
