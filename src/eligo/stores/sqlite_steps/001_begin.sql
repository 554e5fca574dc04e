-- What a server keeps. One writer. Numbers of tasks are places in the workflow's document.
CREATE TABLE workflow (
    id TEXT PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,      -- of the request that submitted it: the same request again is no second workflow
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    share REAL NOT NULL,
    policy TEXT NOT NULL,
    settings TEXT NOT NULL,        -- a JSON object
    state TEXT NOT NULL,
    made REAL NOT NULL,
    document BLOB NOT NULL,
    plan BLOB                      -- the order of its plan, 4 bytes a task
) WITHOUT ROWID;
CREATE TABLE journal (
    workflow TEXT NOT NULL,
    first INTEGER NOT NULL,
    moves BLOB NOT NULL,           -- 8 bytes a move
    PRIMARY KEY (workflow, first)
) WITHOUT ROWID;
-- who has which task; what is here is out
CREATE TABLE lease (
    workflow TEXT NOT NULL,
    number INTEGER NOT NULL,
    task INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    client TEXT NOT NULL,
    secret TEXT NOT NULL,
    key TEXT NOT NULL,             -- of the request that it answered
    part INTEGER NOT NULL,         -- which of that request's grants
    since REAL NOT NULL,
    PRIMARY KEY (workflow, number)
) WITHOUT ROWID;
-- what came of every lease that is no more, under the lease's number
CREATE TABLE outcome (
    workflow TEXT NOT NULL,
    number INTEGER NOT NULL,
    task INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    client TEXT NOT NULL,
    secret TEXT NOT NULL,
    began REAL NOT NULL,
    ended REAL NOT NULL,
    answer TEXT NOT NULL,
    failure TEXT,
    code INTEGER,
    memory INTEGER,
    digest TEXT,
    tail TEXT,
    saved INTEGER NOT NULL,
    PRIMARY KEY (workflow, number)
) WITHOUT ROWID;
-- the files of a workflow by name, as far as they are there
CREATE TABLE file (
    workflow TEXT NOT NULL,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (workflow, name)
) WITHOUT ROWID;
CREATE TABLE signature (
    workflow TEXT NOT NULL,
    task TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (workflow, task)
) WITHOUT ROWID;
CREATE TABLE client (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    cores REAL NOT NULL,
    made REAL NOT NULL,
    seen REAL NOT NULL,
    approved INTEGER NOT NULL,
    quota REAL NOT NULL,           -- how many tasks it may have at once
    streak INTEGER NOT NULL,       -- failures in a row
    pauses INTEGER NOT NULL,       -- in a row
    paused REAL NOT NULL,          -- until then, by the clock on the wall
    valid INTEGER NOT NULL,        -- good results in a row
    done INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    work REAL NOT NULL,            -- what its results were expected to take, and took
    seconds REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE token (
    hash TEXT PRIMARY KEY,
    scopes TEXT NOT NULL,
    client TEXT,
    name TEXT NOT NULL,
    made REAL NOT NULL,
    expires REAL,
    revoked REAL,
    state TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
