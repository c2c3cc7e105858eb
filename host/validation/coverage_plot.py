"""Plots errors over their stated uncertainties: one point a measurement, one row a quantity. SIMULATED."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PANEL, LEFT, ROW, TOP = 400, 190, 34, 46
REACH = 2.0
"""Greatest error over uncertainty on the axis; larger values are drawn at the edge."""


def draw(views: Mapping[str, Sequence[Sequence[float]]], rows: Sequence[str]) -> str:
    """Draws the plot as SVG.

    Args:
        views: title of a panel -> for each row the errors over their expanded uncertainties.
        rows: names of the quantities, one a row.
    """
    height = TOP + ROW * len(rows) + 40
    width = LEFT + (PANEL + 20) * len(views)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for row, quantity in enumerate(rows):
        parts.append(f'<text x="{LEFT - 10}" y="{_row_y(row) + 4}" text-anchor="end" fill="#222">{quantity}</text>')
    for number, (title, errors) in enumerate(views.items()):
        parts += _panel(LEFT + number * (PANEL + 20), title, errors, height)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _row_y(row: int) -> float:
    return TOP + ROW * (row + 0.5)


def _panel(left: int, title: str, errors: Sequence[Sequence[float]], height: int) -> list[str]:
    scale = PANEL / 2 / REACH
    middle = left + PANEL / 2
    parts = [
        f'<text x="{middle}" y="18" text-anchor="middle" fill="#222">SIMULATED: {title}</text>',
        f'<rect x="{middle - scale}" y="{TOP - 8}" width="{2 * scale}"',
        f'height="{ROW * len(errors) + 12}" fill="#e8f1e4"/>',
    ]
    for tick in (-2, -1, 0, 1, 2):
        parts.append(
            f'<text x="{middle + tick * scale}" y="{height - 20}" text-anchor="middle" fill="#222">{tick}</text>'
        )
    parts.append(f'<text x="{middle}" y="{height - 4}" text-anchor="middle" fill="#222">error / stated u</text>')
    for row, quantity in enumerate(errors):
        for index, error in enumerate(quantity):
            x = middle + max(-REACH, min(REACH, error)) * scale
            y = _row_y(row) + (index * 7 % 21 - 10)
            colour = "#4a7a3c" if abs(error) <= 1 else "#b3261e"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="{colour}" fill-opacity="0.7"/>')
    return parts
