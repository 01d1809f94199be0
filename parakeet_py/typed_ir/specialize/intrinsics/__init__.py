"""intrinsics"""
