"""Line charts as SVG, side by side, readable on light and dark pages."""

from html import escape

STYLE = """<style>
text { fill: #24292f; font: 11px sans-serif } .title { font-size: 14px } .grid { stroke: #d0d7de }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .grid { stroke: #3d444d } }
</style>"""
COLOURS = ["#1f77b4", "#e07b00", "#2a9d4a", "#d1495b", "#8d6bd1", "#8c6d5a", "#d667b5", "#7f8c8d", "#a3a32b", "#17a2b8"]
WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 260, 46, 44, 56


def lines(title, panels, along, least, most):
    """Charts of the same axes: panels is {name: {line: [(x, y), ...]}}; y from least to most, what is below is cut."""
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    colour = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(names)}
    dashes = {name: ' stroke-dasharray="5 3"' if n >= len(COLOURS) else "" for n, name in enumerate(names)}
    end = max(x for panel in panels.values() for of in panel.values() for x, _ in of)
    width = LEFT + len(panels) * (WIDTH + GAP)
    row = (width - LEFT) // 165
    rows = (len(names) + row - 1) // row
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HEIGHT + 44 + 18 * rows}">',
        STYLE,
        f'<text class="title" x="{LEFT}" y="16">{escape(title)}</text>',
    ]
    for p, (panel, of) in enumerate(panels.items()):
        left = LEFT + p * (WIDTH + GAP)
        place_x = lambda x, left=left: left + WIDTH * x / end
        place_y = lambda y: TOP + HEIGHT * (1 - (min(max(y, least), most) - least) / (most - least))
        out.append(f'<text x="{left}" y="{TOP - 10}">{escape(panel)}</text>')
        for n in range(5):
            value = least + (most - least) * n / 4
            out.append(
                f'<line class="grid" x1="{left}" x2="{left + WIDTH}" y1="{place_y(value):.1f}" y2="{place_y(value):.1f}"/>'
                f'<text x="{left - 6}" y="{place_y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>'
            )
            x = end * n / 4
            out.append(
                f'<text x="{place_x(x):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{x:.0f}</text>'
            )
        out.append(f'<text x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 32}" text-anchor="middle">{escape(along)}</text>')
        for name, points in of.items():
            path = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in points if y >= least)
            out.append(
                f'<polyline points="{path}" fill="none" stroke="{colour[name]}" stroke-width="1.6"{dashes[name]}>'
                f"<title>{escape(name)}</title></polyline>"
            )
    for n, name in enumerate(names):
        x, y = LEFT + 165 * (n % row), TOP + HEIGHT + 54 + 18 * (n // row)
        out.append(
            f'<line x1="{x}" x2="{x + 18}" y1="{y - 4}" y2="{y - 4}" stroke="{colour[name]}" stroke-width="2.5"{dashes[name]}/>'
            f'<text x="{x + 23}" y="{y}">{escape(name)}</text>'
        )
    out.append("</svg>\n")
    return "\n".join(out)
