-- Leases that were lost, whatever came of them later; when a workflow ended, and what came of it (a JSON list).
ALTER TABLE workflow ADD COLUMN lost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workflow ADD COLUMN ended DOUBLE PRECISION;
ALTER TABLE workflow ADD COLUMN tally TEXT COLLATE "C";
UPDATE workflow SET lost = (SELECT count(*) FROM outcome WHERE outcome.workflow = workflow.id AND answer = 'expired');
UPDATE workflow SET ended = extract(epoch FROM now()) WHERE state IN ('done', 'cancelled');
-- whether a file was given, and not made by a task; and who still needs a file
ALTER TABLE file ADD COLUMN given BIGINT NOT NULL DEFAULT 0;
CREATE INDEX file_content ON file (sha256);
-- tasks that somebody had tried again by hand: what came of leases up to this number does not count against them
CREATE TABLE retried (
    workflow TEXT COLLATE "C" NOT NULL,
    task BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (workflow, task)
);
-- which was never written
ALTER TABLE client DROP COLUMN work;
