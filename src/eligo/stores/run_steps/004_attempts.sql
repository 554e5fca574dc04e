-- Which attempt at its task each one is, and what came of it in the words of servers.
ALTER TABLE attempt RENAME TO attempt_before;
CREATE TABLE attempt (
    number INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    attempt INTEGER NOT NULL,   -- 1 is the first at this task
    client TEXT NOT NULL,
    began REAL NOT NULL,
    ended REAL NOT NULL,
    answer TEXT NOT NULL,       -- 'accepted', 'failed', or 'expired' where the task is not to blame
    failure TEXT,
    code INTEGER,
    memory INTEGER
);
INSERT INTO attempt SELECT number, task, row_number() OVER (PARTITION BY task ORDER BY number), client, began,
    max(began, ended), CASE WHEN failure IS NULL THEN 'accepted' WHEN lost THEN 'expired' ELSE 'failed' END,
    failure, code, memory FROM attempt_before;
DROP TABLE attempt_before;
-- Attempts at tasks that the workflow has no longer had the number behind the last task, which an added one may get.
UPDATE attempt SET task = 2147483647
    WHERE task >= (SELECT count(*) FROM task) AND NOT EXISTS (SELECT 1 FROM addition);
