"""math"""
