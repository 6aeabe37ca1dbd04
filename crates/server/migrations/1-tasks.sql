-- Tasks with what belongs to them. TEXT compares byte by byte: a BINARY collation in SQLite, "C" in PostgreSQL.

-- A task. `json` holds it as it was after event `folded`; what came later stands in `event`.
CREATE TABLE task (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    base_url TEXT NOT NULL,
    context_id TEXT,
    -- The number of the state in the proto, and the milliseconds of its status.
    state BIGINT NOT NULL,
    time BIGINT NOT NULL,
    number BIGINT NOT NULL,
    folded BIGINT NOT NULL,
    json TEXT NOT NULL,
    size BIGINT NOT NULL,
    -- The process that has the turn, where several share a store, and whether it was asked to cancel.
    runner TEXT,
    cancel BIGINT NOT NULL
);
CREATE INDEX task_by_owner ON task (owner, time, id);
CREATE INDEX task_by_context ON task (owner, context_id, time, id);
CREATE INDEX task_by_state ON task (state, time, id);

-- What happened to a task and is not in its `json` yet, or is still to be sent.
CREATE TABLE event (
    task TEXT NOT NULL,
    number BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (task, number)
);

CREATE TABLE webhook (
    task TEXT NOT NULL,
    id TEXT NOT NULL,
    place BIGINT NOT NULL,
    json TEXT NOT NULL,
    given_up TEXT,
    since BIGINT,
    -- The process that sends, where several share a store.
    sender TEXT,
    PRIMARY KEY (task, id)
);

-- What a webhook has not got.
CREATE TABLE delivery (
    task TEXT NOT NULL,
    id TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (task, id, number)
);

-- Messages beside a task, whose callers have gone away believing that the agent has them.
CREATE TABLE waiting (
    task TEXT NOT NULL,
    message_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (task, message_id)
);

-- Messages that are remembered, so that a resend finds its task.
CREATE TABLE sent (
    owner TEXT NOT NULL,
    message_id TEXT NOT NULL,
    json TEXT NOT NULL,
    task TEXT NOT NULL,
    PRIMARY KEY (owner, message_id)
);
CREATE INDEX sent_by_task ON sent (task);

-- The processes that share this store, and when each was last heard of.
CREATE TABLE process (
    id TEXT NOT NULL PRIMARY KEY,
    seen BIGINT NOT NULL
);
