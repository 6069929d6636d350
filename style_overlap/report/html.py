"""A page as one HTML file that needs nothing beside it and asks for nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from style_overlap.report.page import Page, Picture


def render(page: Page, drawings: Mapping[str, str]) -> str:
    """The page; every text in it is escaped.

    Args:
        page: what it says.
        drawings: an ``<svg>`` element for each picture, by its name.
    """
    environment = Environment(
        loader=PackageLoader("style_overlap.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["picture"] = lambda item: isinstance(item, Picture)
    template = environment.get_template("report.html.j2")
    # matplotlib escapes the texts of its figures: these are the only strings taken as markup.
    return template.render(page=page, drawings={k: Markup(v) for k, v in drawings.items()}) + "\n"
