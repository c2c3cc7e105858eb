"""JavaScript that finds unreadable text on a page; each script returns the texts that fail."""

CUT = """[...document.querySelectorAll('svg[role=img] text')].filter((text) => {
    const own = text.getBoundingClientRect(), all = text.ownerSVGElement.getBoundingClientRect();
    return own.left < all.left - 1 || own.right > all.right + 1 || own.top < all.top - 1 || own.bottom > all.bottom + 1;
}).map((text) => text.textContent)"""
OVERLAPS = """[...document.querySelectorAll('svg[role=img], .axis')].flatMap((drawing) => {
    const texts = [...drawing.querySelectorAll('text, .tick')].map((each) => [each, each.getBoundingClientRect()]);
    return texts.flatMap(([a, one], at) => texts.slice(at + 1).filter(([b, two]) =>
        one.left < two.right && two.left < one.right && one.top < two.bottom && two.top < one.bottom)
        .map(([b]) => `${a.textContent} on ${b.textContent}`));
})"""
SMALL = """[...document.querySelectorAll('svg[role=img] text')].filter((text) => {
    const svg = text.ownerSVGElement, scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return scale > 0 && parseFloat(getComputedStyle(text).fontSize) * scale < 9;
}).map((text) => text.textContent)"""
"""Texts of drawings with letters smaller than 9 pixels."""
PANELS_OVER_EACH_OTHER = """[...document.querySelectorAll('.panel-head')].filter((head) => {
    const own = head.getBoundingClientRect(), plot = head.nextElementSibling.getBoundingClientRect();
    return own.bottom > plot.top + 1 || own.right > innerWidth;
}).map((head) => head.textContent)"""
"""Heads of the time chart's panels that overlap their plot or leave the screen."""
