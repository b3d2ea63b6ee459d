"""The worked examples of docs/spectrum.md: their commands are understood, and their files are in the repository."""

import re
import shlex

from attnrate.cli import parser
from tests.conftest import ROOT

TOOL = ROOT / "docs" / "tool"


def test_the_examples_can_be_run_as_they_stand():
    page = (ROOT / "docs" / "spectrum.md").read_text(encoding="utf-8")
    part = page.partition("## Three examples")[2].partition("## From")[0]
    commands = re.findall(r"^ +(attnrate .*)", part, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        options = parser().parse_args(shlex.split(command)[1:])
        assert options.text is None or (TOOL / options.text).is_file()
    for file in re.findall(r"--requirement (\S+)|python (\w+\.py)", part):
        assert (TOOL / "".join(file)).is_file()
    assert {f"tool/{path.name}" for path in TOOL.glob("*.png")} == set(re.findall(r"\((tool/.*?\.png)\)", page))
