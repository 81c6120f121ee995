"""Checksums of the archive's files, what is done with damaged ones, and reading all of it back."""
