"""One module for each part of the table: its cases, how an answer is judged, its rows."""
