-- A run: what it is of, every move, and every attempt. One writer; numbers of tasks are places in `task`.
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS journal (first INTEGER PRIMARY KEY, moves BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS attempt (
    number INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    client TEXT NOT NULL,
    began REAL NOT NULL,
    ended REAL NOT NULL,
    failure TEXT,
    code INTEGER,
    memory INTEGER,
    lost INTEGER NOT NULL
);
