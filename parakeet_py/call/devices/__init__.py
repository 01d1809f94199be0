"""Calls of accelerated functions on devices and teams, and reports of what they do."""
