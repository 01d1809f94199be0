"""Which lists, dicts and sets belong to a function alone, so that changing one is binding its name anew."""
