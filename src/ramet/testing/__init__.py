"""Conformance suites for Resources; run them on your own backend.

from ramet.testing import CHECKS, run_check

@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_my_resource(check, tmp_path):
    run_check(check, lambda: MyResource(tmp_path))
"""

from ramet.testing.read_only_suite import READING
from ramet.testing.resource_suite import CHECKS, Check, refused, run_check

__all__ = ["CHECKS", "READING", "Check", "refused", "run_check"]
