"""HTML that the pages of evaluations and descriptions share. A page is one file, without scripts or requests."""

from __future__ import annotations

from html import escape

from privlearn._version import __version__
from privlearn.release.counts_file import CountsFile
from privlearn.release.html import page

MAX_SHOWN = 50
"""Groups or values of a column that a page shows."""


def whole_page(counts: CountsFile, title: str, body: str, *, command: str, intervals: str) -> str:
    """Return a page: a warning if the counts are not private, ``body``, the guarantee, and a footer.

    ``title`` and ``intervals``: plain text; ``intervals`` explains what the intervals on the page cover. ``body``:
    HTML. ``command``: the command that writes such pages.
    """
    certificate = counts.certificate
    guarantee, meaning = certificate.guarantee, certificate.meaning
    return page(
        title,
        f"""{_warning(counts)}{body}
<h2>Guarantee</h2><p>{escape(str(guarantee))}. {escape(guarantee.in_words())}</p>
<p>{escape("" if meaning is None else meaning.in_words())}</p><p>{escape(certificate.to_dict()["covers"])}</p>
<footer>Written by <code>privlearn {command}</code>, version {__version__}, from noisy counts alone. {escape(intervals)}
</footer>""",
    )


def _warning(counts: CountsFile) -> str:
    certificate = counts.certificate
    if certificate.is_private and not certificate.weakness:
        return ""
    reason = certificate.weakness or "the noise was seeded, or there is none (epsilon = inf)"
    return f'<div class="warning" role="note"><strong>Not private:</strong> {escape(reason)}.</div>'


def omission_note(column: str, values: int) -> str:
    """Return a sentence if a page does not show all ``values`` of a column."""
    if values <= MAX_SHOWN:
        return ""
    return f"<p>Only the first {MAX_SHOWN} of {values:,} values of {escape(column)} are shown; the file has all.</p>"
