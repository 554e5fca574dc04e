-- A check sum of every other table, over its rows in order (see eligo.stores.run_reader).
CREATE TABLE IF NOT EXISTS seal (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
