"""Visits to a round in a folder: everything that a site or a coordinator can do at one time."""
