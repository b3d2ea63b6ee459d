"""dvc.yaml and the stage scripts as data, read without running or importing them."""

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

LAUNCHER = "stages/launcher.py"  # of every stage, a dep of none: nothing in it can change a result
NONE = {"vit_gate", "vit_tuned", "translation_gate", "translation_beside"}  # whose matrix is empty on a laptop


@dataclass
class Stage:
    name: str  # with the item of a matrix: rates_train@paper
    cmd: str
    deps: list[str]
    params: list[str]
    outs: dict[str, dict[str, Any]]  # path → options
    desc: str = ""
    meta: dict[str, Any] = field(default_factory=dict)
    script: str = field(init=False)
    items: list[str] = field(init=False)  # the words after the script

    def __post_init__(self):
        self.cmd = " ".join(self.cmd.split())
        launch, _, rest = self.cmd.partition(" stages/")
        script, *self.items = rest.split()
        assert launch and script.endswith(".py"), f"{self.name}: not a stage script: {self.cmd}"
        self.script = f"stages/{script}"

    @property
    def code(self) -> list[str]:
        return [d for d in self.deps if d.startswith(("src/", "stages/"))]

    @property
    def data(self) -> list[str]:
        """What it reads. reports/params.ok is a barrier, and is not read."""
        return [d for d in self.deps if d not in self.code and d != "reports/params.ok"]


def covers(parent: str, path: str) -> bool:
    return path == parent or path.startswith(f"{parent}/")


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
    """A stage, or one for each item of its matrix."""
    if "matrix" not in block:
        yield name, substitute(block, names)
        return
    axes = substitute(block["matrix"], names)
    body = {k: v for k, v in block.items() if k != "matrix"}
    for values in itertools.product(*axes.values()):
        item = dict(zip(axes, values, strict=True))
        yield f"{name}@{'-'.join(map(str, values))}", substitute(body, names | {"item": item})


def load(path: Path) -> dict:
    return _load(path.read_text(encoding="utf-8"))


@cache
def _load(text: str) -> dict:
    """By content, since copies of the tree are edited; nobody changes what it returns."""
    return yaml.safe_load(text)


def stages(root: Path) -> list[Stage]:
    """Every stage of dvc.yaml, matrices expanded."""
    content, params = (load(root / name) for name in ("dvc.yaml", "params.yaml"))
    known, found = {"matrix", "cmd", "deps", "params", "outs", "desc", "meta"}, []
    for name, block in content["stages"].items():
        assert set(block) <= known, f"{name}: {set(block) - known} is not read here"
        for full, body in expand(name, block, params):
            outs = [o if isinstance(o, dict) else {o: {}} for o in body["outs"]]
            merged = {path: options for out in outs for path, options in out.items()}
            rest = {k: body[k] for k in ("desc", "meta") if k in body}
            found.append(Stage(full, body["cmd"], body["deps"], body.get("params", []), merged, **rest))
    return found


# Imports


def parse(path: Path) -> ast.Module:
    return _parse(path.read_text(encoding="utf-8"))


_parse = cache(ast.parse)


def module_file(root: Path, module: str) -> Path | None:
    """The file of a local module; None for others and for packages, whose __init__.py holds a docstring only."""
    file = root / "src" / Path(*module.split(".")).with_suffix(".py")
    return file if module.startswith("attnrate.") and file.is_file() else None


def neighbours(root: Path, file: Path) -> Iterator[Path]:
    """Local modules that a file imports, and files beside it that it reads through with_name."""
    modules, beside = _named(parse(file))
    assert None not in modules, f"{file}: relative import; write it in full"
    yield from (file.with_name(name) for name in beside)
    yield from filter(None, (module_file(root, m) for m in modules))


@cache
def _named(tree: ast.Module) -> tuple[list[str | None], list[str]]:
    """The modules that a file imports, None for a relative import, and the names it gives to with_name."""
    modules, beside = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            absolute = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            modules += [None] if node.level else absolute
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "with_name":
            if isinstance(node.args[0], ast.Constant) and "__file__" in ast.unparse(node.func.value):
                beside.append(node.args[0].value)
    return modules, beside


def closure(root: Path, script: str) -> set[str]:
    """The files that a stage script is made of."""
    seen, queue = set(), [root / script]
    while queue:
        file = queue.pop()
        if file not in seen:
            seen.add(file)
            if file.suffix == ".py":
                queue += neighbours(root, file)
    return {file.relative_to(root).as_posix() for file in seen}


@cache
def strings(tree: ast.Module) -> set[str]:
    """The strings of a module, without its docstrings."""
    prose = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n not in prose)
    return {node.value for node in found if isinstance(node.value, str)}


def words(root: Path, names: set[str]) -> set[str]:
    """The strings of modules, and whatever is quoted in other files."""
    found = set()
    for file in (root / name for name in names):
        quoted = strings(parse(file)) if file.suffix == ".py" else re.findall(r'"([^"\n]*)"', file.read_text("utf-8"))
        found.update(quoted)
    return found


# The script itself


@dataclass
class Script:
    """main(p, to, *items) of a stage script: the parameters it names and the folders it reads."""

    tree: ast.Module
    items: list[str]
    values: dict  # of params.yaml

    def __post_init__(self):
        (self.main,) = (n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == "main")
        first, second, *names = (a.arg for a in self.main.args.args)
        assert (first, second) == ("p", "to") and len(names) == len(self.items), f"main{(first, second, *names)}"
        self.named = dict(zip(names, self.items, strict=True))
        self.above = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def params(self) -> set[str]:
        """Dotted keys below p, as far as they are written out; "" for the whole of p."""
        found = set()
        for node in ast.walk(self.main):
            if not (isinstance(node, ast.Name) and node.id == "p"):
                continue
            keys: list[str] = []
            while True:
                below, node = node, self.above[node]
                if isinstance(node, ast.Attribute):
                    keys.append(node.attr)
                elif isinstance(node, ast.Subscript) and node.value is below and (key := self._key(node.slice)):
                    keys.append(key)
                else:
                    break
            found.add(".".join(keys))
        return found

    def _key(self, node: ast.expr) -> str | None:
        """The key that a subscript names: a word, an item of the command line, or the value of another parameter."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if ast.unparse(node).startswith("p."):
            return functools.reduce(lambda group, key: group[key], ast.unparse(node).split(".")[1:], self.values)
        return self.named.get(node.id) if isinstance(node, ast.Name) else None

    @cached_property
    def paths(self) -> set[str]:
        """Every stage.results(x) and stage.data(x), with what is joined to it, as far as constants say."""
        found = set()
        for node in self._calls("stage.results", "stage.data"):
            top = "data/" if ast.unparse(node.func) == "stage.data" else "reports/results/"
            texts = self._texts(node.args[0]) if node.args else {""}
            known = {top + ("?" if text.startswith("\0") else text) for text in texts}
            above = self.above[node]
            while isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div) and above.left is node:
                known = {f"{a.rstrip('/')}/{b}" for a in known for b in self._texts(above.right)}
                node, above = above, self.above[above]
            found |= known
        # A beginning ends at its last whole name.
        return {re.sub(r"/[^/]*\0.*", "", path).rstrip("/") for path in found}

    @cached_property
    def written(self) -> set[str]:
        """Its own folders, as results and data, its figures, its tables, and whatever else it names in full."""
        own = [self.above[n] for n in ast.walk(self.main) if isinstance(n, ast.Name) and n.id == "to"]
        folders = {n.attr if isinstance(n, ast.Attribute) else "both" for n in own}
        found = {"results", "data"} if "both" in folders else folders & {"results", "data"}
        found |= {s for s in strings(self.tree) if s.startswith("reports/")}
        for kind, ends in (("figure", ("svg", "png")), ("table", ("csv", "md", "tex"))):
            for call in self._calls(f"{kind}.save", f"{kind}s.save"):
                found |= {f"reports/{kind}s/{name}.{end}" for name in self._texts(call.args[0]) for end in ends}
        return found

    def _calls(self, *names: str) -> list[ast.Call]:
        return [n for n in ast.walk(self.tree) if isinstance(n, ast.Call) and ast.unparse(n.func) in names]

    def _texts(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> set[str]:
        """What a string may be, as far as constants say; \\0 stands for what only a run can tell."""
        if isinstance(node, ast.Constant):
            return {str(node.value)}
        if isinstance(node, ast.FormattedValue):
            return self._texts(node.value, seen)
        if isinstance(node, ast.JoinedStr):
            return {"".join(chosen) for chosen in itertools.product(*(self._texts(v, seen) for v in node.values))}
        if isinstance(node, ast.IfExp):
            return self._texts(node.body, seen) | self._texts(node.orelse, seen)
        if isinstance(node, ast.Name) and node.id in self.named:
            return {self.named[node.id]}
        if isinstance(node, ast.Name) and node.id in self.bound and node.id not in seen:
            return set().union(*(self._texts(value, seen | {node.id}) for value in self.bound[node.id]))
        return {"\0"}

    @cached_property
    def bound(self) -> dict[str, list[ast.expr]]:
        """The values that each name gets anywhere: by assignment, or as an element of what a loop runs over."""
        self._values: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign | ast.AugAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._bind(target, node.value)
        self._assigned = {name: list(values) for name, values in self._values.items()}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.For | ast.comprehension):
                for element in self._elements(node.iter):
                    self._bind(node.target, element)
        return self._values

    def _behind(self, name: ast.Name) -> list[ast.expr]:
        return [value for value in self._assigned.get(name.id, []) if not isinstance(value, ast.Name)]

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple):
            same = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            for i, inner in enumerate(target.elts):
                self._bind(inner, value.elts[i] if same else ast.Constant("\0"))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):  # cases["main"] = …
            self._bind(target.value, ast.Dict([target.slice], [value]))

    def _elements(self, node: ast.expr) -> list[ast.expr]:
        """What a loop over it gives."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return [e for n in node.elts for e in (self._elements(n.value) if isinstance(n, ast.Starred) else [n])]
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return [node.elt]
        if isinstance(node, ast.Dict | ast.DictComp):
            return [key for key, _ in self._pairs(node)]
        if isinstance(node, ast.Name):
            return [e for value in self._behind(node) for e in self._elements(value)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
            pairs = self._pairs(node.func.value)
            if node.func.attr == "items":
                return [ast.Tuple([key, value]) for key, value in pairs]
            return [value for _, value in pairs] if node.func.attr == "values" else []
        return []

    def _pairs(self, node: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
        if isinstance(node, ast.Dict):
            return [(k, v) for k, v in zip(node.keys, node.values, strict=True) if k]
        if isinstance(node, ast.DictComp):
            return [(node.key, node.value)]
        if isinstance(node, ast.Name):
            return [pair for value in self._behind(node) for pair in self._pairs(value)]
        return []


def script(root: Path, stage: Stage) -> Script:
    return Script(parse(root / stage.script), stage.items, load(root / "params.yaml"))
