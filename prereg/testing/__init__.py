"""For test suites of engines and of their users: assert that speculation does not change an output law.

Importing this loads nothing but the standard library; what the assertion needs is loaded when it is called.
"""

from prereg.testing.assertion import Departure, assert_no_departure

__all__ = ["Departure", "assert_no_departure"]
