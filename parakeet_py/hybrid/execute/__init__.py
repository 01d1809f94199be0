"""Calls on one device and on teams."""
