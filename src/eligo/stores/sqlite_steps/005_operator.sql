-- What an operator says of a client: that it gets no tasks for now, and its tags, with blanks between.
ALTER TABLE client ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE client ADD COLUMN tags TEXT NOT NULL DEFAULT '';
-- Documents too large for one commit, written part by part before their workflow, whose own document is empty then.
CREATE TABLE document_part (
    workflow TEXT NOT NULL,
    part INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (workflow, part)
);
