-- Leases of one grant in one row: [[number, task, attempt], ...]. Those that something came of are no more; a grant of
-- which nothing is out has no row.
ALTER TABLE lease RENAME TO lease_before;
CREATE TABLE lease (
    workflow TEXT NOT NULL,
    first INTEGER NOT NULL,        -- its smallest number
    client TEXT NOT NULL,
    secret TEXT NOT NULL,
    key TEXT NOT NULL,             -- of the request that it answered
    since REAL NOT NULL,
    tasks TEXT NOT NULL,
    PRIMARY KEY (workflow, first)
) WITHOUT ROWID;
INSERT INTO lease SELECT workflow, min(number), client, secret, key, min(since),
    json_group_array(json_array(number, task, attempt))
    FROM (SELECT * FROM lease_before ORDER BY workflow, number) GROUP BY workflow, client, secret, key, part;
DROP TABLE lease_before;
-- What came of leases by the page, 256 numbers each: [[number, task, attempt, client, secret, began, ended, answer,
-- failure, code, memory, digest, tail, saved], ...]. Of what came of one lease the last counts.
ALTER TABLE outcome RENAME TO outcome_before;
CREATE TABLE outcome (
    id INTEGER PRIMARY KEY,
    workflow TEXT NOT NULL,
    page INTEGER NOT NULL,
    ends TEXT NOT NULL
);
CREATE INDEX outcome_page ON outcome (workflow, page);
INSERT INTO outcome (workflow, page, ends) SELECT workflow, number / 256, json_group_array(json_array(number, task, attempt,
    client, secret, json(printf('%!.17g', began)), json(printf('%!.17g', ended)), answer, failure, code, memory, digest, tail,
    saved)) FROM (SELECT * FROM outcome_before ORDER BY workflow, number) GROUP BY workflow, number / 256;
DROP TABLE outcome_before;
