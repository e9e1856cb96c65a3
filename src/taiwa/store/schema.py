"""The tables of a store, one list for SQLite and PostgreSQL. A released migration is never edited: a change is a new migration.

Wide rows are in rowid tables with a separate unique 16-byte hash (a WITHOUT ROWID table of the same rows was three times as
large). Inside a store nodes refer to each other by row number (`seq`), which is never shown and not part of a hash. Only
`seq` defines an order: clocks may go back, so the `*_us` columns (microseconds since 1970) are for display. On PostgreSQL,
`seq` orders a node after its parent, and the moves of one name; concurrent writers have no order beyond that.
"""

from taiwa.sql import DatabaseSpec, Migration

TABLES = (
    # Whose the rows are: "" is the owner where there is only one. Nodes and apps are shared by their hashes: they belong to those in
    # `owned_node` and `owned_app`, and to "" if they are not listed.
    """CREATE TABLE app(
        seq {pk},
        hash {blob} NOT NULL UNIQUE CHECK (length(hash) = 16),
        name {text} NOT NULL,
        body {blob} NOT NULL){strict}""",
    """CREATE TABLE owned_app(
        app {int} NOT NULL REFERENCES app(seq) ON DELETE CASCADE, owner {text} NOT NULL, PRIMARY KEY(app, owner)){strict}""",
    # Imported content is untrusted until the user trusts it.
    """CREATE TABLE untrusted_app(
        app {int} NOT NULL REFERENCES app(seq) ON DELETE CASCADE, owner {text} NOT NULL, PRIMARY KEY(app, owner)){strict}""",
    # `base` is the tip before the node's commit, to which undo goes back. It is not a foreign key, because deleting
    # a node would then scan the table; an ancestor is reachable whenever its descendant is.
    """CREATE TABLE node(
        seq {pk},
        hash {blob} NOT NULL UNIQUE CHECK (length(hash) = 16),
        parent {int} REFERENCES node(seq),
        base {int},
        kind {text} NOT NULL,
        app {int} NOT NULL REFERENCES app(seq),
        turns {int} NOT NULL,
        state {blob} NOT NULL,
        body {blob} NOT NULL,
        at_us {int} NOT NULL){strict}""",
    "CREATE INDEX node_parent ON node(parent)",
    """CREATE TABLE owned_node(
        node {int} NOT NULL REFERENCES node(seq) ON DELETE CASCADE, owner {text} NOT NULL, PRIMARY KEY(node, owner)){strict}""",
    """CREATE TABLE snapshot(
        node {int} PRIMARY KEY REFERENCES node(seq) ON DELETE CASCADE,
        state {blob} NOT NULL){strict}""",
    # A deleted ref keeps its row, with node NULL, so that its reflog stays complete when the name is used again. `place`: pinned (1)
    # or archived (-1); `tags`: one a line.
    """CREATE TABLE ref(
        seq {pk},
        name {text} NOT NULL,
        node {int},
        moved {int} NOT NULL,
        owner {text} NOT NULL DEFAULT '',
        title {text} NOT NULL DEFAULT '',
        place {int} NOT NULL DEFAULT 0,
        tags {text} NOT NULL DEFAULT ''){strict}""",
    "CREATE UNIQUE INDEX ref_name ON ref(owner, name) WHERE node IS NOT NULL",
    """CREATE TABLE reflog(
        seq {pk},
        ref {int} NOT NULL REFERENCES ref(seq) ON DELETE CASCADE,
        op {text} NOT NULL,
        old {int},
        new {int},
        reason {text} NOT NULL,
        at_us {int} NOT NULL){strict}""",
    "CREATE INDEX reflog_ref ON reflog(ref)",
    # `requests` counts what was sent to a model, answered or not; `attempt` is the request of a client that may repeat it; `reserved`
    # is what calls may cost that are open, or ended with an unknown cost; `partial` is what a model has written of an answer that
    # has not ended yet, or failed.
    """CREATE TABLE run(
        seq {pk},
        ref {text} NOT NULL,
        base {int},
        node {int},
        app {int} REFERENCES app(seq),
        status {text} NOT NULL,
        input {blob},
        error {blob},
        requests {int} NOT NULL DEFAULT 0,
        model {text} NOT NULL DEFAULT '',
        pid {int} NOT NULL,
        attempt {text} NOT NULL,
        at_us {int} NOT NULL,
        owner {text} NOT NULL DEFAULT '',
        reserved {int} NOT NULL DEFAULT 0,
        partial {blob}){strict}""",
    "CREATE INDEX run_node ON run(node)",
    "CREATE INDEX run_open ON run(seq) WHERE status = 'open'",
    "CREATE INDEX run_attempt ON run(attempt) WHERE attempt <> ''",
    "CREATE INDEX run_begun ON run(owner, at_us) WHERE owner <> ''",
    "CREATE INDEX run_reserved ON run(at_us) WHERE reserved > 0",
    # Several entries of one position are several payments: the last one counts for resuming, all of them cost. `thought_ms` is the
    # measured time of the reasoning before an answer.
    """CREATE TABLE call(
        seq {pk},
        run {int} NOT NULL REFERENCES run(seq) ON DELETE CASCADE,
        strand {text} NOT NULL,
        position {int} NOT NULL,
        kind {text} NOT NULL,
        key {blob} NOT NULL,
        answer {blob},
        error {blob},
        model {text} NOT NULL,
        metered {int} NOT NULL,
        input {int} NOT NULL,
        output {int} NOT NULL,
        cache_read {int} NOT NULL,
        cache_write {int} NOT NULL,
        reasoning {int} NOT NULL,
        cost_nano {int},
        price {text} NOT NULL,
        ms {int} NOT NULL,
        at_us {int} NOT NULL,
        thought_ms {int} NOT NULL DEFAULT 0){strict}""",
    "CREATE INDEX call_run ON call(run)",
    "CREATE INDEX call_at ON call(at_us)",
    # `pid` is the number of the process that works on an open row, as in `run`.
    """CREATE TABLE batch_item(
        key {blob} PRIMARY KEY CHECK (length(key) = 16),
        status {text} NOT NULL,
        result {blob},
        pid {int} NOT NULL,
        at_us {int} NOT NULL,
        owner {text} NOT NULL DEFAULT ''){strict}""",
    # The bytes of attachments, without data where an import left them out; each owner has rows of their own, since a hash proves
    # nothing. A node names its attachments in its body; the rows here let a collection find those that nothing refers to.
    """CREATE TABLE blob(
        seq {pk},
        owner {text} NOT NULL,
        hash {blob} NOT NULL CHECK (length(hash) = 32),
        data {blob},
        UNIQUE(owner, hash)){strict}""",
    """CREATE TABLE node_blob(
        node {int} NOT NULL REFERENCES node(seq) ON DELETE CASCADE,
        blob {int} NOT NULL REFERENCES blob(seq),
        PRIMARY KEY (node, blob)){strict}""",
    """CREATE TABLE run_blob(
        run {int} NOT NULL REFERENCES run(seq) ON DELETE CASCADE,
        blob {int} NOT NULL REFERENCES blob(seq),
        PRIMARY KEY (run, blob)){strict}""",
    # `user` is a keyword of PostgreSQL. What feedback teaches is not stored: it is derived when it is read.
    """CREATE TABLE user_profile(
        seq {pk},
        name {text} NOT NULL,
        body {blob} NOT NULL,
        at_us {int} NOT NULL,
        owner {text} NOT NULL DEFAULT '',
        UNIQUE(owner, name)){strict}""",
    """CREATE TABLE feedback(
        seq {pk},
        user_profile {int} NOT NULL REFERENCES user_profile(seq) ON DELETE CASCADE,
        body {blob} NOT NULL,
        at_us {int} NOT NULL){strict}""",
    "CREATE INDEX feedback_user ON feedback(user_profile)",
    """CREATE TABLE user_session(
        ref {int} PRIMARY KEY REFERENCES ref(seq) ON DELETE CASCADE,
        user_profile {int} NOT NULL REFERENCES user_profile(seq) ON DELETE CASCADE){strict}""",
    "CREATE INDEX user_session_user ON user_session(user_profile)",
    # Histories that clients of the server resend are found by their content; deleting the node deletes what leads to it.
    """CREATE TABLE transcript(
        seq {pk},
        owner {text} NOT NULL,
        app {text} NOT NULL,
        address {blob} NOT NULL CHECK (length(address) = 16),
        turn {blob} NOT NULL CHECK (length(turn) = 16),
        node {int} NOT NULL REFERENCES node(seq) ON DELETE CASCADE,
        session {text} NOT NULL){strict}""",
    "CREATE INDEX transcript_address ON transcript(address)",
    "CREATE INDEX transcript_turn ON transcript(turn)",
    "CREATE INDEX transcript_node ON transcript(node)",
    """CREATE TABLE served(
        seq {pk},
        owner {text} NOT NULL,
        id {text} NOT NULL,
        kind {text} NOT NULL,
        session {text} NOT NULL,
        node {int} REFERENCES node(seq) ON DELETE CASCADE,
        body {blob} NOT NULL,
        UNIQUE(owner, id)){strict}""",
    "CREATE INDEX served_session ON served(session)",
    "CREATE INDEX served_node ON served(node)",
    # The callers of a server, who own rows by their names.
    """CREATE TABLE caller(
        seq {pk},
        name {text} NOT NULL UNIQUE,
        key {blob} NOT NULL UNIQUE CHECK (length(key) = 32),
        max_cost {int},
        rate {int},
        principals {text} NOT NULL,
        at_us {int} NOT NULL){strict}""",
    # Servers of one store; the runs of one that the others follow, with events in portions, from `start` up to `until`.
    "CREATE TABLE server(process {int} PRIMARY KEY){strict}",
    """CREATE TABLE shared_run(
        seq {pk},
        owner {text} NOT NULL,
        id {text} NOT NULL,
        session {text} NOT NULL,
        process {int} NOT NULL,
        stop {int} NOT NULL,
        ended {int} NOT NULL,
        UNIQUE(owner, id)){strict}""",
    """CREATE TABLE shared_event(
        run {int} NOT NULL REFERENCES shared_run(seq) ON DELETE CASCADE,
        until {int} NOT NULL,
        start {int} NOT NULL,
        body {blob} NOT NULL,
        PRIMARY KEY(run, until)){strict}""",
)
POSTGRES = (
    "CREATE INDEX node_app ON node(app)",
    "CREATE INDEX run_app ON run(app)",
    "CREATE INDEX run_ref ON run(ref)",
    # As SQLite has it, for lists of row numbers.
    """CREATE FUNCTION json_each(listed text) RETURNS TABLE(value bigint) LANGUAGE sql STABLE
        AS $$ SELECT CAST(one AS bigint) FROM json_array_elements_text(CAST(listed AS json)) AS one $$""",
    "CREATE SEQUENCE owner AS integer CYCLE",
)
STORE = DatabaseSpec(
    "store",
    schema="taiwa_store",
    application_id=0x74777374,  # `twst`
    first_format=13,
    migrations=(Migration(TABLES, postgres=POSTGRES),),
    created_by="`taiwa chat` creates one",
    repair="run `taiwa fsck`, and export what is still readable or restore a backup",
)
