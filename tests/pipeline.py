"""dvc.yaml and the stage scripts as data, read without running or importing them."""

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


@dataclass
class Stage:
    name: str  # with the item of a matrix: rates_train@paper
    cmd: str
    deps: list[str]
    params: list[str]
    outs: dict[str, dict[str, Any]]  # path → options
    script: str = field(init=False)
    flags: dict[str, str] = field(init=False)  # --width-out x → {"width_out": x}

    def __post_init__(self):
        words = shlex.split(self.cmd)
        assert words[0] == "python" and words[1].startswith("stages/"), f"{self.name}: not a stage script: {self.cmd}"
        assert len(words) % 2 == 0, f"{self.name}: not all of --flag value: {self.cmd}"
        self.script = words[1]
        pairs = list(zip(words[2::2], words[3::2], strict=True))
        assert all(flag.startswith("--") for flag, _ in pairs), f"{self.name}: not all of --flag value: {self.cmd}"
        self.flags = {flag[2:].replace("-", "_"): value for flag, value in pairs}


def lookup(tree: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        tree = tree[int(part)] if isinstance(tree, list) else tree[part]
    return tree


def substitute(value: Any, names: dict) -> Any:
    """value with every ${a.b} replaced; a string that is one ${a.b} becomes what it names."""
    if isinstance(value, dict):
        return {substitute(k, names): substitute(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [substitute(v, names) for v in value]
    if not isinstance(value, str):
        return value
    if whole := re.fullmatch(r"\$\{([^}]+)\}", value):
        return lookup(names, whole[1])
    return re.sub(r"\$\{([^}]+)\}", lambda m: str(lookup(names, m[1])), value)


def expand(name: str, block: dict, names: dict) -> Iterator[tuple[str, dict]]:
    """A stage, or one for each item of its matrix or foreach."""
    if "matrix" in block:
        axes = substitute(block["matrix"], names)
        body = {k: v for k, v in block.items() if k != "matrix"}
        for values in itertools.product(*axes.values()):
            item = dict(zip(axes, values, strict=True))
            yield f"{name}@{'-'.join(map(str, values))}", substitute(body, names | {"item": item})
    elif "foreach" in block:
        items = substitute(block["foreach"], names)
        for key, item in items.items() if isinstance(items, dict) else ((i, i) for i in items):
            yield f"{name}@{key}", substitute(block["do"], names | {"item": item, "key": key})
    else:
        yield name, substitute(block, names)


def stages(root: Path) -> list[Stage]:
    """Every stage of dvc.yaml, matrices expanded."""
    content, params = (yaml.safe_load((root / f).read_text(encoding="utf-8")) for f in ("dvc.yaml", "params.yaml"))
    found = []
    for name, block in content["stages"].items():
        for full, body in expand(name, block, params):
            outs = [
                o if isinstance(o, dict) else {o: {}} for k in ("outs", "metrics", "plots") for o in body.get(k, [])
            ]
            merged = {path: options or {} for out in outs for path, options in out.items()}
            found.append(Stage(full, body["cmd"], body.get("deps", []), body.get("params", []), merged))
    return found


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def module_file(root: Path, module: str) -> Path | None:
    """The file of a local module; None for others and for packages, whose __init__.py holds a docstring only."""
    if module == "bootstrap":
        return root / "stages" / "bootstrap.py"
    file = root / "src" / Path(*module.split(".")).with_suffix(".py")
    return file if module.startswith("attnrate.") and file.is_file() else None


def neighbours(root: Path, file: Path) -> Iterator[Path]:
    """Local modules that a file imports, and files beside it that it reads through with_name."""
    for node in ast.walk(parse(file)):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; write it in full"
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "with_name":
            if isinstance(node.args[0], ast.Constant) and "__file__" in ast.unparse(node.func.value):
                yield file.with_name(node.args[0].value)
        yield from filter(None, (module_file(root, m) for m in modules))


def closure(root: Path, script: str) -> set[str]:
    """What a stage script is made of, as dvc.yaml should list it: src/attnrate/core counts as one."""
    seen, queue = set(), [root / script]
    while queue:
        file = queue.pop()
        if file not in seen:
            seen.add(file)
            if file.suffix == ".py":
                queue += neighbours(root, file)
    names = {file.relative_to(root).as_posix() for file in seen}
    core = {name for name in names if name.startswith("src/attnrate/core/")}
    return names - core | ({"src/attnrate/core"} if core else set())


def constants(tree: ast.Module) -> dict[str, Any]:
    """Names bound to plain values in the module and under `if __name__ == "__main__"`, such as PARAMS."""
    found: dict[str, Any] = {}
    for node in [*tree.body, *(inner for block in tree.body if isinstance(block, ast.If) for inner in block.body)]:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = evaluate(node.value, found)
            except Exception:  # not a plain value
                continue
    return found


def evaluate(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<stage>", "eval"), {"__builtins__": {}, **names})


def declared(root: Path, script: str) -> dict[str, Any]:
    """What a stage script tells stage.run: its PARAMS, inputs, outs and flags."""
    tree = parse(root / script)
    names = constants(tree)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "stage.run"]
    assert len(calls) == 1, f"{script}: calls stage.run {len(calls)} times"
    keywords = {k.arg: k.value for k in calls[0].keywords}
    params = calls[0].args[1] if len(calls[0].args) > 1 else keywords.get("params")
    result = {"params": list(evaluate(params, names)) if params else []}
    for key in ("inputs", "outs", "flags"):
        result[key] = list(evaluate(keywords[key], names)) if key in keywords else []
    return result
