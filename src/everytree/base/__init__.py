"""Array types, argument checks, errors, random generators and progress, used by all other packages."""
