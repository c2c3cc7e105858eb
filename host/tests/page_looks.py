"""JavaScript that finds what nobody could read in a page: each gives the texts that fail."""

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
FAINT = """(() => {
    const light = (colour) => {
        const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255)
            .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const ground = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (!/, 0\\)$|transparent/.test(colour)) return light(colour);
        }
        return 1;
    };
    return [...document.querySelectorAll('body :not(title)')].filter((each) => [...each.childNodes].some((node) =>
        node.nodeType === 3 && node.textContent.trim())).filter((each) => {
        const style = getComputedStyle(each), drawn = each instanceof SVGElement ? style.fill : style.color;
        const [one, two] = [light(drawn), ground(each)].sort((a, b) => b - a);
        return (one + 0.05) / (two + 0.05) < 4.5;
    }).map((each) => each.textContent.slice(0, 40));
})()"""
"""Texts whose contrast is less than 4.5. Source: WCAG 2.2, 1.4.3 and its relative luminance."""
SMALL = """[...document.querySelectorAll('svg[role=img] text')].filter((text) => {
    const svg = text.ownerSVGElement, scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return scale > 0 && parseFloat(getComputedStyle(text).fontSize) * scale < 9;
}).map((text) => text.textContent)"""
"""Letters of drawings that are smaller than 9 pixels."""
PANELS_OVER_EACH_OTHER = """[...document.querySelectorAll('.panel-head')].filter((head) => {
    const own = head.getBoundingClientRect(), plot = head.nextElementSibling.getBoundingClientRect();
    return own.bottom > plot.top + 1 || own.right > innerWidth;
}).map((head) => head.textContent)"""
"""Heads of the time chart's panels that lie over their plot or leave the screen."""
