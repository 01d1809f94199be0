"""specialize"""
