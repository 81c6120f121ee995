"""What commands print: tables and answers for a terminal."""
