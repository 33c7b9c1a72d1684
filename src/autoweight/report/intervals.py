"""95 % intervals of means, by Student's t."""

_T = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120)
"""Student's 97.5 % quantiles for 1, 2, ... degrees of freedom."""
_FAR_T = 2.11  # not below those of more: 2.1098 for 17


def half_width(standard_error: float, count: int) -> float:
    """Half of the interval of a mean of `count` values, at least two, with this standard error."""
    return standard_error * (_T[count - 2] if count - 2 < len(_T) else _FAR_T)
