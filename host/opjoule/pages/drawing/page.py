"""The page that every report is: one file that opens from disk without a network, in a dark and a light version.

Its elements, in HTML and SVG, come from the standard library's ElementTree, which escapes all text and attributes.
string.Template inserts them into the page's frame (assets/page.html). A template language would be a dependency for a
single page, and would leave escaping to each template.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any
from xml.etree import ElementTree

from opjoule.base.notices import Grade, Notice, NoticeKind

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


def page(title: str, notices: Iterable[Notice], main: Iterable[Element], scripts: str = "") -> str:
    """HTML of a page.

    Args:
        notices: banners above everything.
        scripts: script elements that follow the content.
    """
    banners = element("div", *map(_banner, notices), class_="banners")
    return Template(asset("page.html")).substitute(
        title=text_of(element("title", f"{title}: OpJoule")),
        style=page_style(),
        banners=text_of(banners),
        main=text_of(*main),
        scripts=scripts,
    )


def page_style() -> str:
    """Style sheet of every page, with that of its drawings."""
    return library_style() + asset("page.css")


def header(title: str, kicker: str, *children: Child) -> Element:
    """Title and what the page is; text among the children is in small type."""
    lines = (element("p", child, class_="workload") if isinstance(child, str) else child for child in children)
    return element("header", element("p", kicker, class_="kicker"), element("h1", title), *lines)


def section(name: str, heading: str, *children: Child) -> Element:
    """A part of a page with its heading, which names the part for screen readers."""
    title = element("h2", heading, id=f"h-{name}")
    return element("section", title, *children, aria_labelledby=f"h-{name}")


def _banner(notice: Notice) -> Element:
    look = "warning" if notice.kind.grade is Grade.NOTE else "grave"
    look = "simulated" if notice.kind is NoticeKind.SIMULATED else look
    words = element("strong", notice.title), element("p", notice.sentence)
    return element("div", *words, class_=f"banner {look}", role="note")


def library_style() -> str:
    """Style sheet of every drawing, with the colours of light and dark pages."""
    return text_file("vendor/uPlot.min.css") + asset("drawing.css")


def asset(name: str) -> str:
    """A file of assets/."""
    return text_file(f"assets/{name}")


def text_file(name: str) -> str:
    """A file below this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
