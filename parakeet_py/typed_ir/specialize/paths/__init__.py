"""paths"""
