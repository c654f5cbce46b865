"""Fixtures that several files share."""

from tests.unit.seal_kit import collected, collected_once, sealed, sealed_once

__all__ = ["collected", "collected_once", "sealed", "sealed_once"]
