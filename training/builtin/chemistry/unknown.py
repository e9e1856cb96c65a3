"""Names of compounds that do not exist; the model must answer that it does not know the formula."""

from random import Random

from taiwa.tools.compound_names import named, substance
from training.builtin.chemistry.naming import said, usual
from training.builtin.chemistry.reacting import prompt
from training.builtin.chemistry.weighing import ELEMENTS
from training.builtin.samples import Sample, Span

__all__ = ["unknown"]

ONSETS = (
    "b c d f g h j k l m n p q r s t v w x y z bl br ch cl cr dr fl fr gl gr kr pl pr qu sc sk sl sm sn sp st str th thr tr "
    "vr wr zh zv"
).split()
MIDDLES = "a e i o u y ae ai ea ei eo ia io oa oi ou ua uo ee oo".split()
CODAS = "b d f g k l m n p r s t v x z ck ld lm ln lp lt mb nd ng nk nt rb rd rg rk rm rn rt sk st ts".split()
METALS = "ium ium ium um on ite ine anium onium ulium erium icum".split()
IONS = """chloride bromide iodide fluoride oxide sulfide sulphide sulfate sulphate nitrate carbonate phosphate hydroxide acetate
nitride hydride chromate permanganate cyanide dioxide trioxide tetrachloride pentoxide hexafluoride bicarbonate""".split()
ANIONS = "ate ite ide yl ine ylate inate onate".split()
ENDINGS = tuple(
    (
        "ane,ene,yne,anol,ol,al,anal,anone,one,oic acid,ic acid,ous acid,enic acid,amine,amide,ine,idine,ide,ose,in,cillin,mycin,"
        "statin,pril,olol,azole,oxin,ex,on,ium,ite,ate,yl alcohol,yl chloride,yl acetate,aldehyde,anhydride,oside,ylene,en,an"
    ).split(",")
)
SHAPES = 9
DETAILS = ("(II)", "(III)", "(IV)", "(VI)")
SECTIONS = (
    "weight one", "weight one", "weight many", "percent", "moles in", "products", "products with", "need reactant", "solution mass",
)  # fmt: skip


def unknown(random: Random) -> Sample:
    """Ask any kind of question about a compound that does not exist."""
    name = invented(random)
    section = random.choice(SECTIONS)
    other = said(random, usual(random), by_name=True)
    number, grams = str(random.randint(1, 12)), str(random.randint(2, 400))
    element = random.choice(("C", "H", "O", "N", "Cl", "carbon", "oxygen", "hydrogen"))
    slots = {"X": name, "N": number, "M": grams, "E": element}
    if section.startswith("products"):
        one, two = f"{number} mol of {name}", f"{random.randint(1, 9)} mol of {other.text}"
        if random.random() < 0.5:
            one, two = two, one
        made = said(random, substance("H2O"), by_name=True).text
        slots = {"A": one, "B": two, "AB": f"{one} and {two}", "X": made}
        slots |= {"Q": f"the number of moles of {made}", "H": f"how many moles of {made}"}
    slots |= {"G": f"{number} mol of {other.text}", "P": f"{number} mol of water", "V": "2", "C": grams[0]}
    slots = {"Q": f"the moles of {name}", "H": f"how many moles of {name}"} | slots
    text = prompt(random, section, slots, [*name.split(), element])
    at = text.lower().find(name.lower())
    written = text[at : at + len(name)] if at >= 0 else name
    return Sample("solve", "unknown", text, (Span(f"I do not know the formula of {written}."),))


def invented(random: Random) -> str:
    """Return a made-up compound name."""
    while True:
        name = _shaped(random)
        if name.lower() not in named() and not set(name.lower().split()) & _ELEMENT_NAMES:
            return name if random.random() < 0.7 else name[0].upper() + name[1:]


def _shaped(random: Random) -> str:
    shape = random.randrange(SHAPES)
    if shape == 0:
        return f"{_stem(random)}{random.choice(METALS)} {random.choice(IONS)}"
    if shape == 1:
        return f"{random.choice(_KNOWN)} {_stem(random)}{random.choice(ANIONS)}"
    if shape == 2:
        return f"{_stem(random)}{random.choice(METALS)}{random.choice(DETAILS)} {random.choice(IONS)}"
    if shape == 3:
        return f"{_stem(random)}{random.choice(ENDINGS)}"
    if shape == 4:
        return f"{_stem(random)}{_stem(random)}{random.choice(ENDINGS)}"
    if shape == 5:
        return f"{_stem(random)}{random.choice(METALS)}"
    if shape == 6:
        return f"{random.choice(('di', 'tri', 'tetra', 'penta', 'per', 'hypo', 'meta', 'ortho', 'iso', 'neo'))}{_stem(random)}{random.choice(ENDINGS)}"
    if shape == 7:
        return f"{_stem(random)}{random.choice(METALS)} {_stem(random)}{random.choice(ANIONS)}"
    return f"{_stem(random).capitalize()}{random.choice(('ite', 'ine', 'in', 'ol', 'ex', 'um', 'on'))}-{random.choice('ABCDXZ237')}"


def _stem(random: Random) -> str:
    text = random.choice(ONSETS) + random.choice(MIDDLES) + random.choice(CODAS)
    if random.random() < 0.35:
        text += random.choice(MIDDLES) + random.choice(CODAS)
    return text


_KNOWN = (
    "sodium",
    "potassium",
    "calcium",
    "magnesium",
    "zinc",
    "copper",
    "iron(III)",
    "ammonium",
    "silver",
    "barium",
    "lead(II)",
)
_ELEMENT_NAMES = frozenset(ELEMENTS.values()) - frozenset(_KNOWN)
