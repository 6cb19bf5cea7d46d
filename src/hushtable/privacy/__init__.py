"""What makes a sketch fit to leave a site: accounting, noise, releases, and their audit."""
