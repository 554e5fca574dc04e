-- The outputs of tasks: the size of each when its task was done, and no size when the run removed it.
CREATE TABLE IF NOT EXISTS file (number INTEGER PRIMARY KEY, at REAL NOT NULL, name TEXT NOT NULL, size INTEGER);
