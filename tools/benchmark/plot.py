# SPDX-License-Identifier: Apache-2.0
"""A plot with logarithmic axes, as SVG."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 74, 140, 44, 56
COLOURS = ["#1f6feb", "#8250df", "#57606a", "#bf8700", "#cf222e"]
STEPS = [m * 10.0 ** n for n in range(-6, 9) for m in (1, 2, 5)]


class Axis:
    """From the least to the greatest, each a whole power of ten or that times 2 or 5."""

    def __init__(self, values, start, end):
        self.low = max(v for v in STEPS if v <= min(values) * 1.001)
        self.high = min(v for v in STEPS if v >= max(values) * 0.999 and v > self.low)
        self.start, self.end = start, end

    def at(self, value):
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def inside(self, values):
        return [v for v in values if self.low * 0.999 <= v <= self.high * 1.001]

    def ticks(self):
        """Those that get a label: the powers of ten, and the ends."""
        return sorted({*self.inside(10.0 ** n for n in range(-6, 9)), self.low, self.high})

    def between(self):
        return self.inside(m * 10.0 ** n for n in range(-6, 9) for m in range(2, 10))


def label(value):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def text(x, y, words, anchor="middle", **more):
    extra = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in more.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def grid(x, y):
    """Lines at the powers of ten, fainter ones between them."""
    lines = []
    for ticks, colour in ((x.between(), "#f0f2f4"), (x.ticks(), "#d0d7de")):
        lines += [f'<path d="M{x.at(v):.1f} {y.start}V{y.end}" stroke="{colour}"/>' for v in ticks]
    for ticks, colour in ((y.between(), "#f0f2f4"), (y.ticks(), "#d0d7de")):
        lines += [f'<path d="M{x.start} {y.at(v):.1f}H{x.end}" stroke="{colour}"/>' for v in ticks]
    lines += [text(x.at(v), y.start + 18, label(v)) for v in x.ticks()]
    lines += [text(x.start - 8, y.at(v) + 4, label(v), "end") for v in y.ticks()]
    return lines


def apart(places, least=15):
    """Heights of labels, moved down until none lies on another."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    result, last = list(places), -math.inf
    for i in order:
        result[i] = max(places[i], last + least)
        last = result[i]
    return result


def draw(title, x_title, y_title, series):
    """series: {name: [(x, y)]}."""
    points = [p for line in series.values() for p in line]
    x = Axis([p[0] for p in points], LEFT, WIDTH - RIGHT)
    y = Axis([p[1] for p in points], HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="12" fill="#24292f">', '<rect width="100%" height="100%" fill="#ffffff"/>', *grid(x, y),
           text(LEFT, 24, title, "start", font_size=15, font_weight="bold"),
           text((x.start + x.end) / 2, HEIGHT - 14, x_title),
           text(18, (y.start + y.end) / 2, y_title, transform=f"rotate(-90 18 {(y.start + y.end) / 2:.1f})")]
    heights = apart([y.at(line[-1][1]) for line in series.values()])
    for (name, line), colour, height in zip(series.items(), COLOURS, heights):
        path = "L".join(f"{x.at(a):.1f} {y.at(b):.1f}" for a, b in line)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="3" fill="{colour}"/>' for a, b in line]
        out.append(text(x.end + 10, height + 4, name, "start", fill=colour))
    return "\n".join(out + ["</svg>"]) + "\n"
