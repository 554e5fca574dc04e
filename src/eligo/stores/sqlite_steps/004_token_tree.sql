-- The hash of the token with which a token was made: it is worthless once that one is. None: nobody's but the operator's.
ALTER TABLE token ADD COLUMN parent TEXT;
