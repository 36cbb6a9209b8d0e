"""Helpers whose assertions are shown in full."""

import pytest

pytest.register_assert_rewrite("tests.contract.document_lines", "tests.contract.live_lines")
