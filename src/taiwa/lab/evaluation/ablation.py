"""The settings of an evaluation of reasoning: how many worked examples, which tools, and how a tool is switched off.

After the tables of MultiTool-CoT (Inaba et al., ACL 2023, tables 1 and 2). `execution` is the paper's way: the prompt stays
as it is, and the model writes the results of tools that are switched off. `exposure` takes such a tool out of the
instructions and out of the worked examples, so that the model does without it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value

__all__ = ["ALL", "NONE", "SHORT", "Grid", "Mode", "Setting", "read_ablations", "read_counts", "read_modes"]

Mode: TypeAlias = Literal["execution", "exposure"]
Style: TypeAlias = Literal["direct", "steps", "tools"]
"""The answer at once · step by step without a tool that works · step by step with tools."""

SHORT: Mapping[str, str] = MappingProxyType({"cal": "calculator", "crp": "stoichiometry", "mml": "molar_mass"})
"""The paper's names of tools."""
NONE, ALL = "none", "all"
PAPER_SHOTS = (5, 10, 20)
PAPER_SINGLE = ("cal", "crp", "mml")
MOST_SHOTS = 1_000


@value(tag="ablation-setting")
class Setting:
    """One line of the table. `working` tools are called, `shown` ones stand in the prompt; `order` numbers the shuffles."""

    name: str
    style: Style
    shots: int
    working: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    ablate: str = ""
    mode: str = ""
    order: int = 0

    @property
    def withheld(self) -> tuple[str, ...]:
        """Tools that are shown and not called."""
        return tuple(tool for tool in self.shown if tool not in self.working)


@dataclass(frozen=True, slots=True)
class Grid:
    """Which settings there are. Without counts and ablations they are those of the paper's two tables."""

    tools: tuple[str, ...]
    shots: tuple[int, ...] | None = None
    ablations: tuple[str, ...] | None = None
    modes: tuple[Mode, ...] = ("execution",)
    orders: int = 1

    def settings(self) -> tuple[Setting, ...]:
        """Every setting once, in the order of the table."""
        found: dict[str, Setting] = {}
        for shots, ablation in self._pairs():
            for order in range(self.orders if shots else 1):
                for mode in self.modes:
                    for setting in self._made(shots, ablation, mode, order):
                        found.setdefault(setting.name, setting)
        return tuple(found.values())

    @property
    def full(self) -> str:
        """The setting that the others are compared with: all tools, the most examples; '' where it is not there."""
        with_all = [one for one in self.settings() if one.ablate == ALL and one.order == 0]
        return max(with_all, key=lambda one: one.shots).name if with_all else ""

    def _pairs(self) -> Iterable[tuple[int, str]]:
        if self.shots is None and self.ablations is None:
            most = PAPER_SHOTS[-1]
            yield from (
                (0, NONE),
                (most, NONE),
                *((most, one) for one in PAPER_SINGLE if SHORT[one] in self.tools),
                (most, ALL),
            )
            yield from ((shots, ablation) for ablation in (NONE, ALL) for shots in PAPER_SHOTS[:-1])
            return
        for shots in self.shots if self.shots is not None else (PAPER_SHOTS[-1],):
            yield from ((shots, ablation) for ablation in (self.ablations or (NONE, ALL)))

    def _made(self, shots: int, ablation: str, mode: Mode, order: int) -> Iterable[Setting]:
        """The settings of one cell; without tools the answer at once comes first."""
        head, tail = ("Few-Shot", f"@{shots}") if shots else ("Zero-Shot", "")
        tail += f" order {order}" if order else ""
        if ablation == NONE:
            if shots in (0, self._most) and not order:
                yield Setting(f"{head}{tail}", "direct", shots, order=order)
            # Without an example there is nothing that a model could imitate.
            if not shots or mode == "exposure":
                yield Setting(
                    f"{head}+CoT{tail}{_suffix(mode) if shots else ''}", "steps", shots, (), (), NONE, mode, order
                )
            else:
                yield Setting(f"{head}+CoT{tail}", "steps", shots, (), self.tools, NONE, mode, order)
            return
        working = self.tools if ablation == ALL else self._named(ablation)
        name = f"+{ablation.upper()}{tail}" if shots else f"{head}+{ablation.upper()}"
        whole = working == self.tools
        shown = self.tools if mode == "execution" else working
        yield Setting(
            name + ("" if whole else _suffix(mode)),
            "tools",
            shots,
            working,
            shown,
            ALL if whole else ablation,
            mode,
            order,
        )

    @property
    def _most(self) -> int:
        return max((shots for shots, _ in self._pairs()), default=0)

    def _named(self, ablation: str) -> tuple[str, ...]:
        wanted = {SHORT.get(word, word) for word in ablation.split("+")}
        return tuple(tool for tool in self.tools if tool in wanted)


def _suffix(mode: Mode) -> str:
    return " exposure" if mode == "exposure" else ""


def read_counts(text: str) -> tuple[int, ...]:
    """Read numbers of worked examples: `0,5,10,20`.

    Raises:
        InputError: one is no such number.
    """
    words = _words(text)
    for word in words:
        if not (word.isascii() and word.isdecimal() and len(word) <= 6 and int(word) <= MOST_SHOTS):
            raise InputError(
                f"--shots takes numbers from 0 to {MOST_SHOTS:,} with commas between, and {word!r} is none"
            )
    return tuple(dict.fromkeys(map(int, words)))


def read_ablations(text: str, tools: Sequence[str]) -> tuple[str, ...]:
    """Read what is switched on: `none,cal,crp,mml,all`, names of tools, or several of them as `cal+mml`.

    Raises:
        InputError: one is no tool of this evaluation.
    """
    shorts = {tool: short for short, tool in SHORT.items()}
    found: list[str] = []
    for word in _words(text.lower()):
        if word in (NONE, ALL):
            found.append(word)
            continue
        wanted = {SHORT.get(name, name): name for name in word.split("+")}
        strange = next((name for tool, name in wanted.items() if tool not in tools), None)
        if strange is not None:
            known = [shorts[tool] for tool in tools if tool in shorts]
            raise InputError(f"--ablate: {strange!r} is none of {', '.join((NONE, *known, *tools, ALL))}")
        # One name for one set: cal, calculator and mml+cal, cal+mml are two settings and not four.
        found.append("+".join(shorts.get(tool, tool) for tool in tools if tool in wanted))
    return tuple(dict.fromkeys(found))


def read_modes(text: str) -> tuple[Mode, ...]:
    """Read modes: `execution`, `exposure`, or both with a comma.

    Raises:
        InputError: one is neither.
    """
    found: list[Mode] = []
    for word in _words(text):
        mode = next((mode for mode in get_args(Mode) if mode == word), None)
        if mode is None:
            raise InputError(f"--mode is execution, exposure, or both with a comma between, and not {word!r}")
        found.append(mode)
    return tuple(dict.fromkeys(found))


def _words(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if not all(words):
        raise InputError(f"{text!r} is no list: words with commas between")
    return words
