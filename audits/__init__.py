"""The independent auditor: every step and every decision of a study, derived again from its raw files.

Written from ``docs/formats.md`` and ``schemas/v1`` alone. It uses the standard library, and
``cryptography`` to check signatures; the first analysis and the collector are never imported.
"""

from __future__ import annotations

RULES = 1
"""The version of the rules this auditor applies (``rules.json`` says the same)."""
