-- What servers keep. Numbers of tasks are places in the workflow's document.
CREATE TABLE workflow (
    id TEXT COLLATE "C" PRIMARY KEY,
    key TEXT COLLATE "C" NOT NULL UNIQUE,  -- of the request that submitted it: the same request again is no second workflow
    name TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    share DOUBLE PRECISION NOT NULL,
    policy TEXT COLLATE "C" NOT NULL,
    settings TEXT COLLATE "C" NOT NULL,  -- a JSON object
    state TEXT COLLATE "C" NOT NULL,
    made DOUBLE PRECISION NOT NULL,
    document BYTEA NOT NULL,
    plan BYTEA  -- the order of its plan, 4 bytes a task
);
CREATE TABLE journal (
    workflow TEXT COLLATE "C" NOT NULL,
    first BIGINT NOT NULL,
    moves BYTEA NOT NULL,  -- 8 bytes a move
    PRIMARY KEY (workflow, first)
);
-- who has which task; what is here is out
CREATE TABLE lease (
    workflow TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    task BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    client TEXT COLLATE "C" NOT NULL,
    secret TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,  -- of the request that it answered
    part BIGINT NOT NULL,  -- which of that request's grants
    since DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (workflow, number)
);
-- what came of every lease that is no more, under the lease's number
CREATE TABLE outcome (
    workflow TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    task BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    client TEXT COLLATE "C" NOT NULL,
    secret TEXT COLLATE "C" NOT NULL,
    began DOUBLE PRECISION NOT NULL,
    ended DOUBLE PRECISION NOT NULL,
    answer TEXT COLLATE "C" NOT NULL,
    failure TEXT COLLATE "C",
    code BIGINT,
    memory BIGINT,
    digest TEXT COLLATE "C",
    tail TEXT COLLATE "C",
    saved BIGINT NOT NULL,
    PRIMARY KEY (workflow, number)
);
-- the files of a workflow by name, as far as they are there
CREATE TABLE file (
    workflow TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    sha256 TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (workflow, name)
);
CREATE TABLE signature (
    workflow TEXT COLLATE "C" NOT NULL,
    task TEXT COLLATE "C" NOT NULL,
    signature TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workflow, task)
);
CREATE TABLE client (
    id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    cores DOUBLE PRECISION NOT NULL,
    made DOUBLE PRECISION NOT NULL,
    seen DOUBLE PRECISION NOT NULL,
    approved BOOLEAN NOT NULL,
    quota DOUBLE PRECISION NOT NULL,  -- how many tasks it may have at once
    streak BIGINT NOT NULL,  -- failures in a row
    pauses BIGINT NOT NULL,  -- in a row
    paused DOUBLE PRECISION NOT NULL,  -- until then, by the clock on the wall
    valid BIGINT NOT NULL,  -- good results in a row
    done BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    lost BIGINT NOT NULL,
    work DOUBLE PRECISION NOT NULL,  -- what its results were expected to take, and took
    seconds DOUBLE PRECISION NOT NULL
);
CREATE TABLE token (
    hash TEXT COLLATE "C" PRIMARY KEY,
    scopes TEXT COLLATE "C" NOT NULL,
    client TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL,
    made DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION,
    revoked DOUBLE PRECISION,
    state TEXT COLLATE "C" NOT NULL
);
CREATE TABLE fact (name TEXT COLLATE "C" PRIMARY KEY, value TEXT COLLATE "C" NOT NULL);
-- a server from its start to its end, and the number of the last commit that it made: none is made twice
CREATE TABLE writer (id TEXT COLLATE "C" PRIMARY KEY, number BIGINT NOT NULL) WITH (fillfactor = 20);
-- which server holds a workflow until when, by this database's clock; the epoch is one more for every change of hands
CREATE TABLE holding (
    workflow TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    address TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    until TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50);
