"""The type stubs say what the native module has."""

import ast
import importlib.util
from pathlib import Path

import pytest

import volta

TOOL = Path(__file__).parents[1] / "tools" / "make_stubs.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_stubs", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stubs_are_up_to_date(tool):
    assert tool.stale() == [], "run python python/tools/make_stubs.py"


def test_every_parameter_has_a_type(tool):
    for name, write in tool.STUBS.items():
        for node in ast.walk(ast.parse(write())):
            if isinstance(node, ast.FunctionDef):
                arguments = node.args.args + node.args.kwonlyargs
                missing = [a.arg for a in arguments if a.annotation is None and a.arg != "self"]
                assert not missing and node.returns is not None, f"{name}: {node.name}"


def test_the_package_says_that_it_has_types():
    assert (Path(volta.__file__).parent / "py.typed").exists()
