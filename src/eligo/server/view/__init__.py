"""Views: the answers of the API, the documents of the page, and the page itself."""
