"""The tests. The coverage tool is imported before all modules that it measures."""

from tests import coverage

if coverage.IS_ON:
    coverage.begin()
