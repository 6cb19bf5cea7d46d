"""Several organisations: rounds, secure sums, the site's book. Needs the extra ``federation``."""
