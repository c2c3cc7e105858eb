"""HTML and SVG elements from the standard library's ElementTree, which escapes all text and attributes.

string.Template inserts these elements into the page's frame (assets/page.html). A template language would be a
dependency for a single page, and would leave escaping to each template.
"""

import json
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

Element = ElementTree.Element
Child = Element | str | None


def element(tag: str, *children: Child, **attributes: object) -> Element:
    """An element. Attribute names are as in HTML, with `class_` and `for_` for Python's keywords and `_` for `-`."""
    stated = {name: str(value) for name, value in attributes.items() if value is not None}
    made = ElementTree.Element(tag, {name.rstrip("_").replace("_", "-"): stated[name] for name in stated})
    for child in children:
        append(made, child)
    return made


def append(parent: Element, child: Child) -> None:
    """Adds an element or text at the end."""
    if isinstance(child, ElementTree.Element):
        parent.append(child)
    elif child and len(parent):
        parent[-1].tail = (parent[-1].tail or "") + child
    elif child:
        parent.text = (parent.text or "") + child


def table(head: Iterable[Child], body: Iterable[Element], caption: str, class_: str | None = None) -> Element:
    """A table in a scrolling frame, with a caption and column headings."""
    columns = element("tr", *(element("th", cell, scope="col") for cell in head))
    parts = element("caption", element("span", caption)), element("thead", columns), element("tbody", *body)
    made = element("table", *parts, class_=class_)
    return element("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def row(heading: Child, *cells: Child, class_: str | None = None) -> Element:
    """A table row whose first cell is its heading."""
    data = (element("td", cell) for cell in cells)
    return element("tr", element("th", heading, scope="row"), *data, class_=class_)


def text_of(*parts: Element) -> str:
    """The parts as HTML source."""
    return "\n".join(ElementTree.tostring(part, encoding="unicode", method="html") for part in parts)


def embedded_json(value: Any) -> str:
    """JSON for use inside a script element; nothing in it can end the element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
