"""The page that every report is: one file that opens from disk without a network, in a dark and a light version."""

from collections.abc import Iterable
from string import Template

from opjoule.base.notices import Grade, Notice, NoticeKind
from opjoule.pages.drawing.chart import asset, library_style
from opjoule.pages.drawing.markup import Child, Element, element, text_of


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
