"""The histogram: heights of bars, and its text."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from gradlab.explore.histogram import TALL, WIDE, histogram

SVG = "{http://www.w3.org/2000/svg}"


def test_heights_of_bars_and_the_text():
    drawing = histogram([2, 0, 8, 1000], ("−1", "3 <"), "#123456", "gradient")
    root = ET.fromstring(drawing.inline())
    bars = list(root.iter(f"{SVG}rect"))
    assert [bar.find(f"{SVG}title").text for bar in bars] == ["2", "8", "1000"], "an empty bin has no bar"
    assert [float(bar.get("x")) for bar in bars] == [0, WIDE / 2, 3 * WIDE / 4]
    assert [float(bar.get("height")) for bar in bars] == [1, 1, TALL], "bars of small counts are visible, too"
    assert all(float(bar.get("y")) + float(bar.get("height")) == TALL for bar in bars)
    assert root.findtext(f"{SVG}title") == "gradient"
    assert " ".join(root.findtext(f"{SVG}desc").split()) == "1 010 numbers from −1 to 3 <, in 4 equal parts"
    assert drawing.text.endswith(": 2, 0, 8, 1000")
