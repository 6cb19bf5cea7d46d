import world_dates, world_labels, world_numbers, world_programs, world_formats
from world_tables import WORLD

judge = None
