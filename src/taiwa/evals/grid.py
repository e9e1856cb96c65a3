"""The settings of an evaluation of reasoning: numbers of worked examples, tools, and how a tool is switched off.

After the tables of MultiTool-CoT (Inaba et al., ACL 2023, tables 1 and 2). In mode `execution`, the paper's, the prompt does
not change and the model writes the results of tools that are switched off. In mode `exposure` such a tool is removed from the
instructions and from the worked examples.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, cast, get_args

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value

AblationMode: TypeAlias = Literal["execution", "exposure"]
Style: TypeAlias = Literal["direct", "steps", "tools"]
"""Answer directly; step by step without working tools; step by step with tools."""

TOOL_ABBREVIATIONS: Mapping[str, str] = MappingProxyType(
    {"cal": "calculator", "crp": "stoichiometry", "mml": "molar_mass"}
)
"""Abbreviations of tools, as in the paper."""
NONE, ALL = "none", "all"
PAPER_SHOTS = (5, 10, 20)
PAPER_SINGLE = ("cal", "crp", "mml")
MAX_SHOTS = 1_000


@value(tag="ablation-setting")
class Setting:
    """One line of the table. `working` tools are called, `shown` tools are in the prompt; `order` numbers the shuffles."""

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
        """Tools that are shown but not called."""
        return tuple(tool for tool in self.shown if tool not in self.working)


@dataclass(frozen=True, slots=True)
class Grid:
    """The settings to measure. Without counts and ablations they are those of the paper's two tables."""

    tools: tuple[str, ...]
    shots: tuple[int, ...] | None = None
    ablations: tuple[str, ...] | None = None
    modes: tuple[AblationMode, ...] = ("execution",)
    orders: int = 1

    def settings(self) -> tuple[Setting, ...]:
        """Return each setting once, in the order of the table."""
        settings: dict[str, Setting] = {}
        for shots, ablation in self._pairs():
            for order in range(self.orders if shots else 1):
                for mode in self.modes:
                    for setting in self._made(shots, ablation, mode, order):
                        settings.setdefault(setting.name, setting)
        return tuple(settings.values())

    @property
    def full(self) -> str:
        """The reference setting: all tools and the most examples; '' if it is not among the settings."""
        with_all = [one for one in self.settings() if one.ablate == ALL and one.order == 0]
        return max(with_all, key=lambda one: one.shots).name if with_all else ""

    def _pairs(self) -> Iterable[tuple[int, str]]:
        if self.shots is None and self.ablations is None:
            most = PAPER_SHOTS[-1]
            single = [one for one in PAPER_SINGLE if TOOL_ABBREVIATIONS[one] in self.tools]
            yield from ((0, NONE), (most, NONE), *((most, one) for one in single), (most, ALL))
            yield from ((shots, ablation) for ablation in (NONE, ALL) for shots in PAPER_SHOTS[:-1])
            return
        for shots in self.shots if self.shots is not None else (PAPER_SHOTS[-1],):
            yield from ((shots, ablation) for ablation in (self.ablations or (NONE, ALL)))

    def _made(self, shots: int, ablation: str, mode: AblationMode, order: int) -> Iterable[Setting]:
        """Yield the settings of one cell; without tools, the direct answer comes first."""
        head, tail = ("Few-Shot", f"@{shots}") if shots else ("Zero-Shot", "")
        tail += f" order {order}" if order else ""
        if ablation == NONE:
            if shots in (0, self._most) and not order:
                yield Setting(f"{head}{tail}", "direct", shots, order=order)
            # Without an example the model has no result to imitate.
            shown = self.tools if shots and mode == "execution" else ()
            name = f"{head}+CoT{tail}{_suffix(mode) if shots else ''}"
            yield Setting(name, "steps", shots, (), shown, NONE, mode, order)
            return
        working = self.tools if ablation == ALL else self._named(ablation)
        whole = working == self.tools
        name = f"+{ablation.upper()}{tail}" if shots else f"{head}+{ablation.upper()}"
        name += "" if whole else _suffix(mode)
        shown = self.tools if mode == "execution" else working
        yield Setting(name, "tools", shots, working, shown, ALL if whole else ablation, mode, order)

    @property
    def _most(self) -> int:
        return max((shots for shots, _ in self._pairs()), default=0)

    def _named(self, ablation: str) -> tuple[str, ...]:
        wanted = {TOOL_ABBREVIATIONS.get(word, word) for word in ablation.split("+")}
        return tuple(tool for tool in self.tools if tool in wanted)


def _suffix(mode: AblationMode) -> str:
    return " exposure" if mode == "exposure" else ""


def parse_shots(text: str) -> tuple[int, ...]:
    """Parse numbers of worked examples, such as `0,5,10,20`.

    Raises:
        InputError: an element is not a number in range.
    """
    words = _split_list(text)
    for word in words:
        if not (word.isascii() and word.isdecimal() and len(word) <= 6 and int(word) <= MAX_SHOTS):
            raise InputError(f"invalid --shots {word!r}; expected numbers from 0 to {MAX_SHOTS:,}, separated by commas")
    return tuple(dict.fromkeys(map(int, words)))


def parse_ablations(text: str, tools: Sequence[str]) -> tuple[str, ...]:
    """Parse the tools that are switched on: `none,cal,crp,mml,all`, names of tools, or several as `cal+mml`.

    Raises:
        InputError: an element is not a tool of this evaluation.
    """
    shorts = {tool: short for short, tool in TOOL_ABBREVIATIONS.items()}
    ablations: list[str] = []
    for word in _split_list(text.lower()):
        if word in (NONE, ALL):
            ablations.append(word)
            continue
        wanted = {TOOL_ABBREVIATIONS.get(name, name): name for name in word.split("+")}
        strange = next((name for tool, name in wanted.items() if tool not in tools), None)
        if strange is not None:
            known = ", ".join((NONE, *(shorts[tool] for tool in tools if tool in shorts), *tools, ALL))
            raise InputError(f"--tools-on: unknown tool {strange!r}; choose one of {known}")
        # Canonical names: cal and calculator are one setting, and so are mml+cal and cal+mml.
        ablations.append("+".join(shorts.get(tool, tool) for tool in tools if tool in wanted))
    return tuple(dict.fromkeys(ablations))


def parse_modes(text: str) -> tuple[AblationMode, ...]:
    """Parse modes: `execution`, `exposure`, or both with a comma.

    Raises:
        InputError: an element is unknown.
    """
    words = _split_list(text)
    unknown = next((word for word in words if word not in get_args(AblationMode)), None)
    if unknown is not None:
        raise InputError(f"unknown --mode {unknown!r}; choose execution, exposure, or both with a comma")
    return tuple(dict.fromkeys(cast("tuple[AblationMode, ...]", words)))


def _split_list(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if not all(words):
        raise InputError(f"invalid list {text!r}; separate words with commas")
    return words
