"""What a mutant may change: Cosmic Ray's catalogue, cut down, and two kinds of this project.

Of Cosmic Ray's replacements only the near ones are kept (`<` by `<=`, `+` by `-`, a number by its
neighbours): far ones fail on import and say nothing about a test. The kinds of this project are
what its code lives by: a check that is left out, and a rounding to the other side.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

KINDS = {
    "comparison": (
        "ReplaceComparisonOperator_",
        "Lt_LtE LtE_Lt Gt_GtE GtE_Gt Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is",
    ),
    "arithmetic": (
        "ReplaceBinaryOperator_",
        "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul "
        "LShift_RShift RShift_LShift BitAnd_BitOr BitOr_BitAnd BitXor_BitAnd",
    ),
    "sign or not": ("ReplaceUnaryOperator_", "Delete_USub Delete_Not"),
    "logic": ("Replace", "AndWithOr OrWithAnd TrueWithFalse FalseWithTrue BreakWithContinue"),
    "number": ("", "NumberReplacer"),
    "flow": ("", "ReplaceContinueWithBreak ExceptionReplacer ZeroIterationForLoop"),
}
# What turns a rounding, a search or a bound to its other side, as a part of a name.
SIDES = (
    ("up", "down"),
    ("above", "below"),
    ("first", "last"),
    ("upper", "lower"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("floor", "ceil"),
    ("any", "all"),
)
OTHER = {a: b for pair in SIDES for a, b in (pair, pair[::-1])}
# A star that is no product: in front of arguments.
STARS = {"parameters", "param", "argument", "lambdef", "arglist"}


class LeftOut(Operator):
    """A call that stands alone is left out: a check, or an effect."""

    def mutation_positions(self, node):
        if node.type == "simple_stmt" and node.children[0].type in ("power", "atom_expr"):
            last = node.children[0].children[-1]
            if last.type == "trailer" and last.children[0] == "(":
                yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        left = parso.parse("pass\n").children[0]
        left.get_first_leaf().prefix = node.get_first_leaf().prefix
        return left

    @classmethod
    def examples(cls):
        return ()


class OtherSide(Operator):
    """A rounding, a search or a bound turned to its other side, where it is called or imported."""

    def mutation_positions(self, node):
        if node.type == "name" and other_side(node) is not None:
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        node.value = other_side(node)
        return node

    @classmethod
    def examples(cls):
        return ()


def other_side(name) -> str | None:
    """What a name becomes, where its counterpart is to be had; None elsewhere."""
    words = name.value.split("_")
    turned = "_".join(OTHER.get(word, word) for word in words)
    if turned == name.value:
        return None
    if name.parent.type in ("import_as_names", "import_from"):
        home = name.search_ancestor("import_from").get_code()
        return f"{turned} as {name.value}" if "hushed._" in home and turned not in home else None
    if name.get_next_leaf() != "(" or name.get_previous_leaf() == "def":
        return None
    known = turned in OTHER or f" {turned}" in name.get_root_node().get_code()
    return turned if known else None


@dataclass(frozen=True, kw_only=True)
class Place:
    """One thing that can be changed in a file."""

    file: str
    line: int
    kind: str
    operator: Operator
    occurrence: int

    def mutated(self, source: str) -> str | None:
        """Text with the change; None where it is no Python or changes nothing."""
        text = mutate_code(source, self.operator, self.occurrence)
        if text is None or text == source:
            return None
        try:
            compile(text, self.file, "exec")
        except SyntaxError:
            return None
        return text


def operators() -> Iterator[tuple[str, Operator]]:
    for kind, (prefix, names) in KINDS.items():
        for name in names.split():
            yield kind, get_operator(f"core/{prefix}{name}")()
    yield "left out", LeftOut()
    yield "other side", OtherSide()


def spared(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Ranges that no test should see: annotations, decorators, options of fields."""
    found: list[ast.AST] = []
    for node in ast.walk(ast.parse(source)):
        found += filter(None, (getattr(node, name, None) for name in ("annotation", "returns")))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            found.append(node)
        marks = getattr(node, "decorator_list", [])
        found += marks
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "field":
            found.append(node)
        if any(ast.unparse(mark) == "overload" for mark in marks):
            found.append(node)
    return [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in found]


def places(file: str, source: str) -> Iterator[Place]:
    """Give all places of a file, in its order for each operator."""
    nodes, idle = list(ast_nodes(get_ast(source))), spared(source)
    for kind, operator in operators():
        found = [(n, start) for n in nodes for start, _ in operator.mutation_positions(n)]
        for occurrence, (node, start) in enumerate(found):
            star = kind == "arithmetic" and node.parent.type in STARS
            if not star and not any(first <= start < last for first, last in idle):
                yield Place(
                    file=file, line=start[0], kind=kind, operator=operator, occurrence=occurrence
                )
