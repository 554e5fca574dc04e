"""Code that several formats share: files, JSON, YAML and XML texts, documents, drawings, rules, and arcs from files."""
