-- Leases that were lost, whatever came of them later; when a workflow ended, and what came of it (a JSON list).
ALTER TABLE workflow ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workflow ADD COLUMN ended REAL;
ALTER TABLE workflow ADD COLUMN tally TEXT;
UPDATE workflow SET lost = (SELECT count(*) FROM outcome WHERE outcome.workflow = workflow.id AND answer = 'expired');
UPDATE workflow SET ended = CAST(strftime('%s', 'now') AS REAL) WHERE state IN ('done', 'cancelled');
-- whether a file was given, and not made by a task; and who still needs a file
ALTER TABLE file ADD COLUMN given INTEGER NOT NULL DEFAULT 0;
CREATE INDEX file_content ON file (sha256);
-- tasks that somebody had tried again by hand: what came of leases up to this number does not count against them
CREATE TABLE retried (
    workflow TEXT NOT NULL,
    task INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (workflow, task)
) WITHOUT ROWID;
-- a column less, which was never written; not by DROP COLUMN, which SQLite has only since 3.35
ALTER TABLE client RENAME TO client_before;
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
    seconds REAL NOT NULL          -- what its results took
) WITHOUT ROWID;
INSERT INTO client SELECT id, name, cores, made, seen, approved, quota, streak, pauses, paused, valid, done, failed, lost,
    seconds FROM client_before;
DROP TABLE client_before;
