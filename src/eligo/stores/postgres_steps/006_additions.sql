-- Tasks that were added to a workflow since it was submitted: their rows as a list of JSON, and arcs by number, 4 bytes an end.
CREATE TABLE addition (
    workflow TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    tasks TEXT COLLATE "C" NOT NULL,
    arcs BYTEA NOT NULL,
    PRIMARY KEY (workflow, number)
);
