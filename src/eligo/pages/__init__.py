"""Pages: documents about plans, comparisons and running workflows, which web pages and terminals render."""
