"""What people look at: drawings, words and templates of the status page and of reports."""
