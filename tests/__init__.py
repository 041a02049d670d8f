"""The tests. What measures them comes before all that it looks at."""

from tests import coverage

if coverage.IS_ON:
    coverage.begin()
