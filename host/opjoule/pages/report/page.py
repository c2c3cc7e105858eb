"""The frame of every page: one file that opens from disk without a network, in a dark and a light version."""

from collections.abc import Iterable
from pathlib import Path
from string import Template

from opjoule.base.notices import Grade, Notice, NoticeKind
from opjoule.pages.drawing.chart import library_style
from opjoule.pages.drawing.markup import Child, Element, element, text_of

_HERE = Path(__file__).parent


def framed(title: str, banners: Element, main: Iterable[Element], scripts: str = "") -> str:
    """HTML of a page; `scripts` are the script elements that follow the content."""
    frame = Template(asset("page.html"))
    return frame.substitute(
        title=text_of(element("title", f"{title}: OpJoule")),
        style=library_style() + asset("report.css"),
        banners=text_of(banners),
        main=text_of(*main),
        scripts=scripts,
    )


def section(name: str, heading: str, *children: Child) -> Element:
    """A part of a page with its heading, which names the part for screen readers."""
    title = element("h2", heading, id=f"h-{name}")
    return element("section", title, *children, aria_labelledby=f"h-{name}")


def banner(notice: Notice) -> Element:
    """A notice above all numbers."""
    look = "warning" if notice.kind.grade is Grade.NOTE else "grave"
    look = "simulated" if notice.kind is NoticeKind.SIMULATED else look
    words = element("strong", notice.title), element("p", notice.sentence)
    return element("div", *words, class_=f"banner {look}", role="note")


def asset(name: str) -> str:
    """A file of assets/."""
    return (_HERE / "assets" / name).read_text(encoding="utf-8")
