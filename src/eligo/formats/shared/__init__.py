"""What several formats share: files, words of a text, documents, drawings, rules with files, columns."""
