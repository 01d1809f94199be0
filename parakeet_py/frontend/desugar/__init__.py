"""desugar"""
