"""ownership"""
