-- What an operator says of a client: that it gets no tasks for now, and its tags, with blanks between.
ALTER TABLE client ADD COLUMN held BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE client ADD COLUMN tags TEXT COLLATE "C" NOT NULL DEFAULT '';
-- Documents too large for one commit, written part by part before their workflow, whose own document is empty then.
CREATE TABLE document_part (
    workflow TEXT COLLATE "C" NOT NULL,
    part BIGINT NOT NULL,
    content BYTEA NOT NULL,
    made TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (workflow, part)
);
