"""What `taiwa demo` shows: commands in four parts, with what should come of them."""

from dataclasses import dataclass

from taiwa.i18n import gettext_noop

__all__ = ["ASKED_BACK", "PARTS", "Part", "Step"]

ASKED_BACK = 3
INSTRUCTION = "Solve the problem step by step. End with a line that states the answer; its number comes last."
"""What the flow of `taiwa solve` begins with: the built-in model knows by it what is wanted."""
FORMULA = r"((Ammonia|Ethanol|Glucose|Methane|Water) is ([A-Z][a-z]?[0-9]{0,2}){1,9}|I do not know the formula of [a-z]{3,20})\."


@dataclass(frozen=True, slots=True)
class Step:
    """A command; `{said}` in it stands for what is said, which a person may replace.

    `shows` must occur in what it prints, and `code` is its exit code. A `reply` comes only where the step before it asked back.
    """

    about: str
    command: str
    said: str = ""
    shows: str = ""
    code: int = 0
    reply: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Steps that belong together, and the command to try next."""

    title: str
    steps: tuple[Step, ...]
    then: str


SOLVING = Part(
    gettext_noop(
        "Problems: the network writes, is interrupted where it calls a tool, and continues after the exact result."
    ),
    (
        Step(
            gettext_noop("Chemistry: the name gives the formula, the formula the molar mass."),
            "taiwa solve {said}",
            "How many grams do 3 moles of sulfuric acid weigh?",
            "294.2",
        ),
        Step(
            gettext_noop("A reaction: which of the two is used up first?"),
            "taiwa solve {said}",
            "4 mol of methane and 6 mol of oxygen react. How many moles of carbon dioxide are formed?",
            "answer is 3 mol",
        ),
        Step(
            gettext_noop("Everyday life."),
            "taiwa solve {said}",
            "A train travels 210 km in 2.5 hours. What is its average speed in km/h?",
            "answer is 84 km/h",
        ),
    ),
    'taiwa solve "What is the mass percent of oxygen in water?" --trace',
)
DESK = Part(
    gettext_noop("An order desk: a conversation with typed state. The network writes the reply and the state delta, constrained by a grammar."),
    (
        Step(gettext_noop("A first order."), "taiwa say order -s desk {said}", "Two grande lattes with oat milk, please."),
        Step(gettext_noop("A correction."), "taiwa say -s desk {said}", "Make that three, please."),
        Step(gettext_noop("In Japanese."), "taiwa say -s desk {said}", "あと、抹茶ラテを一つお願いします。"),
        Step(
            gettext_noop("The state is data, checked by its type."),
            "taiwa state -s desk",
            shows="matcha latte",
        ),
        Step(
            gettext_noop("Every value can be traced to the turn that set it."),
            "taiwa why items.1 -s desk",
            shows="set by turn 2",
        ),
        Step(
            gettext_noop("Undo moves message and state together …"),
            "taiwa undo -s desk",
            shows="2",
        ),
        Step(
            gettext_noop("… a fork continues on another branch from there,"),
            "taiwa fork desk other",
            shows="other",
        ),
        Step(
            gettext_noop("where the guest finishes the order; a tool computes the total."),
            "taiwa say -s other {said}",
            "That's everything, thank you.",
            "12.6",
        ),
        Step(
            gettext_noop("The first branch is still there."), "taiwa redo -s desk", shows="3"
        ),
        Step(
            gettext_noop("Two branches, compared."),
            "taiwa diff desk other",
            shows='status: "open" → "confirmed"',
        ),
        Step(gettext_noop("Both histories."), "taiwa log --tree", shows="← other"),
        Step(
            gettext_noop("A replay from the records: no model call, every hash checked."),
            "taiwa replay desk",
            shows="0 model calls",
        ),
        Step(gettext_noop("The bill."), "taiwa cost --by session", shows="desk"),
    ),
    "taiwa chat order",
)  # fmt: skip
ASKING = Part(
    gettext_noop(
        "Questions to documents: the network assesses what is wanted; the program searches, asks back, and quotes."
    ),
    (
        Step(
            gettext_noop("A question that lacks something: the program asks back,"),
            "taiwa ask {said}",
            "I have a question about leave.",
            code=ASKED_BACK,
        ),
        Step(
            gettext_noop("and with the reply it finds an answer with its source."),
            "taiwa ask -c {said}",
            "1",
            "[1]",
            reply=True,
        ),
        Step(
            gettext_noop("A clear question is answered at once."),
            "taiwa ask {said}",
            "How many days of annual leave do I have in Galway?",
            "26",
        ),
    ),
    'taiwa ask "What may a hotel in Dublin cost a night?" -v     (your documents: --in FOLDER)',
)
HOLDING = Part(
    gettext_noop("A constraint: at each position only tokens that can still lead to an allowed text are possible."),
    (
        Step(
            gettext_noop("«Forced» tokens cost no pass of the network; it writes the formula itself. (--system is the instruction that it was trained with.)"),
            f'taiwa generate --system "{INSTRUCTION}" --regex "{FORMULA}" -v {{said}}',
            "What is the formula of ammonia?",
            "Ammonia is NH3.",
        ),
        Step(
            gettext_noop("The masks of such a text, position by position, over the vocabulary of this network."),
            f'taiwa explain --vocab builtin --regex "{FORMULA}" {{said}}',
            "Ammonia is NH3.",
            "it fits",
        ),
    ),
    "taiwa explain --regex \"[0-9]{1,3}%\" 42% --html masks.html",
)  # fmt: skip
PARTS = (SOLVING, DESK, ASKING, HOLDING)
