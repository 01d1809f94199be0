"""What every package builds on: errors, settings, types, effects of callees, data classes, files of the cache."""
