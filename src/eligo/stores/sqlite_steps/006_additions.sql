-- Tasks that were added to a workflow since it was submitted: their rows as a list of JSON, and arcs by number, 4 bytes an end.
CREATE TABLE addition (
    workflow TEXT NOT NULL,
    number INTEGER NOT NULL,
    tasks TEXT NOT NULL,
    arcs BLOB NOT NULL,
    PRIMARY KEY (workflow, number)
);
