"""Operations of host parts that are no parallel regions: elements, other forms of arrays, NumPy's compiled loops."""
