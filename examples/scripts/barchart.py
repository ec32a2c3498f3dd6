"""Bar charts as SVG, for the page of proofs."""

import re
from html import escape

COLOURS = {
    "randomized": "#9aa0a6",
    "ltrp": "#4c8bf5",
    "rollout": "#188038",
    "vector-rearrangement": "#e8a33d",
    "milp": "#a142f4",
}
OTHER = "#4c8bf5"


def bars(title, groups, series, least=0.0):
    """Groups of bars with a line from least to most: series is {name: [(mean, min, max), ...]}, None where there is no bar."""
    left, top, width, height = 50, 40, 700, 220
    most = max(of[2] for values in series.values() for of in values if of)
    most = least + (most - least) * 1.05
    y = lambda value: top + height * (1 - (min(max(value, least), most) - least) / (most - least))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 20}" height="{top + height + 90}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{left}" y="18" font-size="14">{escape(title)}</text>',
    ]
    for n in range(5):
        value = least + (most - least) * n / 4
        out.append(
            f'<line x1="{left}" x2="{left + width}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#e0e0e0"/>'
            f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>'
        )
    part = width / len(groups)
    bar = part * 0.8 / len(series)
    for g, group in enumerate(groups):
        for s, (name, values) in enumerate(series.items()):
            if not values[g]:
                continue
            mean, low, high = values[g]
            x = left + part * (g + 0.1) + bar * s
            out.append(
                f'<rect x="{x:.1f}" y="{y(mean):.1f}" width="{bar * 0.9:.1f}" height="{y(least) - y(mean):.1f}" '
                f'fill="{COLOURS.get(name, OTHER)}"><title>{escape(f"{group}, {name}: {mean:.4f}")}</title></rect>'
                f'<line x1="{x + bar * 0.45:.1f}" x2="{x + bar * 0.45:.1f}" y1="{y(low):.1f}" y2="{y(high):.1f}" '
                'stroke="#333"/>'
            )
        for n, words in enumerate(re.split(r", ", group, maxsplit=2)):
            x, below = left + part * (g + 0.5), top + height + 16 + 13 * n
            out.append(f'<text x="{x:.1f}" y="{below}" text-anchor="middle">{escape(words)}</text>')
    for s, name in enumerate(series):
        x, below = left + 150 * s, top + height + 75
        out.append(
            f'<rect x="{x}" y="{below - 9}" width="10" height="10" fill="{COLOURS.get(name, OTHER)}"/>'
            f'<text x="{x + 14}" y="{below}">{escape(name)}</text>'
        )
    out.append("</svg>\n")
    return "\n".join(out)
