"""Authentication: tokens, admission of callers, and the signatures of owners."""
