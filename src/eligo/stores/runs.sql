-- A run: what it is of, every move, and every attempt. One writer; numbers of tasks are places in `task`.
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS journal (first INTEGER PRIMARY KEY, moves BLOB NOT NULL);
-- what was added to the workflow meanwhile: names, as a list of JSON, and arcs by number, 4 bytes an end
CREATE TABLE IF NOT EXISTS addition (number INTEGER PRIMARY KEY, tasks TEXT NOT NULL, arcs BLOB NOT NULL);
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
-- every time that it was begun or gone on with; it has no end where it goes on still, or was killed
CREATE TABLE IF NOT EXISTS session (
    number INTEGER PRIMARY KEY,
    began REAL NOT NULL,
    ended REAL,
    policy TEXT NOT NULL,
    workers INTEGER NOT NULL,
    engine TEXT NOT NULL
);
-- of the plan: its order, and after each step the tasks ready in it and the most there can be; 8 bytes a number
CREATE TABLE IF NOT EXISTS curve (name TEXT PRIMARY KEY, points BLOB NOT NULL) WITHOUT ROWID;
-- a check sum of every table above, over its rows in order (see eligo.formats.shared.seals)
CREATE TABLE IF NOT EXISTS seal (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
