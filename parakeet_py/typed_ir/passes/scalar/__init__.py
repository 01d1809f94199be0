"""scalar"""
