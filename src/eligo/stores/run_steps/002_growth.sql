-- Tasks added to the workflow while it ran: names, as a JSON list, and arcs by number, 4 bytes an end.
CREATE TABLE IF NOT EXISTS addition (number INTEGER PRIMARY KEY, tasks TEXT NOT NULL, arcs BLOB NOT NULL);
-- Each time the run was started or resumed; the end is missing while it runs, and after a kill.
CREATE TABLE IF NOT EXISTS session (
    number INTEGER PRIMARY KEY,
    began REAL NOT NULL,
    ended REAL,
    policy TEXT NOT NULL,
    workers INTEGER NOT NULL,
    engine TEXT NOT NULL
);
-- Of the plan: its order, and after each step the tasks ready in it and the most there can be; 8 bytes a number.
CREATE TABLE IF NOT EXISTS curve (name TEXT PRIMARY KEY, points BLOB NOT NULL) WITHOUT ROWID;
