"""The setting that hides fixes, the parts of errors, warnings and findings that say what to write instead.

In homework a fix may be the answer.
"""

from __future__ import annotations


class FixSetting:
    """`shown`: whether messages contain fixes. `%config GradMagics.fixes` sets it; checks turn it off for a student's code."""

    shown = True


fix_setting = FixSetting()


def offer_fix(text: str) -> str:
    """Return the part of a message that says what to write instead, or "" if fixes are not shown."""
    return text if fix_setting.shown else ""
