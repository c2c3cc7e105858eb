"""`report`: summary and page of an existing record."""
