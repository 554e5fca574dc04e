"""Authentication: tokens, who is admitted, and the signatures of owners."""
