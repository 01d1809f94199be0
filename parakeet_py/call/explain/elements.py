"""HTML and SVG as a tree: the standard library's `ElementTree`, whose serializer for HTML escapes all text.

So there is no markup in strings, nothing that could be left unescaped, and no template engine to install.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

Child = str | Element | None | Iterable["Child"]


def element(name: str, /, *children: Child, **attributes: object) -> Element:
    """An element; attributes that are None or empty are left out, as is the last underscore of `class_`."""
    given = {
        key.rstrip("_").replace("_", "-"): str(value) for key, value in attributes.items() if value not in (None, "")
    }
    made = Element(name, given)
    _add(made, children)
    return made


def _add(parent: Element, children: Iterable[Child]) -> None:
    for child in children:
        if isinstance(child, Element):
            parent.append(child)
        elif not isinstance(child, str):
            _add(parent, child or ())
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + child
        else:
            parent.text = (parent.text or "") + child


def as_html(root: Element) -> str:
    return tostring(root, encoding="unicode", method="html")


def document(title: str, style: str, *body: Child, base: str = "") -> str:
    """A whole document, in UTF-8. `base` is where its links begin, if not at the document."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("base", href=base) if base else None,
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", style),
    )
    return "<!doctype html>\n" + as_html(element("html", head, element("body", *body), lang="en"))
