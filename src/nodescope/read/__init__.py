"""Files and live tail -> tables: catalog, query, rates, downsampling."""
