"""Loads the fixtures that the suites use."""

pytest_plugins = ["fixtures.board", "fixtures.xdp"]
