"""The English words of the order app: synonyms of dishes, milks, sizes and ways of serving."""

from collections.abc import Mapping
from typing import TypeAlias

__all__ = ["MILK_WORDS", "NOUNS", "SIZE_WORDS", "STANDS", "SWEET_WORDS"]

Forms: TypeAlias = tuple[str, ...]


def _forms(text: str) -> tuple[tuple[str, str], ...]:
    """Nouns in singular and plural: `donut,donuts`; without a comma the plural ends in s."""
    pairs = (entry.strip().partition(",") for entry in text.split("/"))
    return tuple((one, many or f"{one}s") for one, _, many in pairs)


NOUNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "espresso": _forms("expresso/shot of espresso,shots of espresso/espresso coffee/caffe espresso/espresso shot"),
    "ristretto": _forms("ristretto coffee/espresso ristretto/ristreto"),
    "lungo": _forms("espresso lungo/caffe lungo/lungo coffee"),
    "macchiato": _forms("espresso macchiato/machiato/caffe macchiato/macciato"),
    "americano": _forms("caffe americano/americano coffee/cafe americano/amerikano"),
    "coffee": _forms("cup of coffee,cups of coffee/filter coffee/brewed coffee/drip coffee/cup of joe,cups of joe/house coffee/"
                     "pour over/brew coffee/java/coffe"),
    "cold brew": _forms("cold brew coffee/cold-brew/coldbrew"),
    "cortado": _forms("cortado coffee/gibraltar"),
    "cappuccino": _forms("cappucino/capuccino/capp/cappuccino coffee/cappuchino"),
    "latte": _forms("caffe latte/cafe latte/latte coffee/café latte/late/cafè latte/latté"),
    "latte macchiato": _forms("latte machiato/latte macciato/macchiato latte"),
    "flat white": _forms("flat white coffee/flatwhite/flat-white"),
    "mocha": _forms("caffe mocha/cafe mocha/mocca/moka/mocha latte/mocha coffee"),
    "chai latte": _forms("chai tea latte/chai/latte chai/chai-latte/chai tea"),
    "matcha latte": _forms("matcha/green tea latte/matcha tea latte/macha latte"),
    "hojicha latte": _forms("houjicha latte/roasted tea latte"),
    "hot chocolate": _forms("cocoa/hot cocoa/hot choc/drinking chocolate/cup of cocoa,cups of cocoa"),
    "milk": _forms("glass of milk,glasses of milk/steamed milk,steamed milks/cup of milk,cups of milk"),
    "affogato": _forms("affogatto/espresso affogato"),
    "frappe": _forms("frappé/frappuccino/frappe coffee"),
    "tea": _forms("cup of tea,cups of tea/pot of tea,pots of tea/cuppa"),
    "black tea": _forms("cup of black tea,cups of black tea/assam/darjeeling/ceylon tea"),
    "green tea": _forms("cup of green tea,cups of green tea/sencha/japanese tea"),
    "earl grey": _forms("earl grey tea/earl gray/earl gray tea/cup of earl grey,cups of earl grey"),
    "english breakfast tea": _forms("english breakfast/breakfast tea"),
    "oolong tea": _forms("oolong"), "jasmine tea": _forms("jasmine/jasmine green tea"), "hojicha": _forms("houjicha/roasted green tea"),
    "peppermint tea": _forms("mint tea/cup of peppermint tea,cups of peppermint tea"), "chamomile tea": _forms("camomile tea/chamomile"),
    "rooibos tea": _forms("rooibos/redbush tea"), "lemon tea": _forms("tea lemon/citrus tea"), "ginger tea": _forms("cup of ginger tea,cups of ginger tea"),
    "herbal tea": _forms("herb tea/herbal infusion/tisane"), "iced tea": _forms("ice tea/cold tea/glass of iced tea,glasses of iced tea"),
    "lemonade": _forms("glass of lemonade,glasses of lemonade/home made lemonade/limonade"),
    "orange juice": _forms("oj/glass of orange juice,glasses of orange juice/fresh orange juice/o j"),
    "apple juice": _forms("glass of apple juice,glasses of apple juice/cloudy apple juice"),
    "grapefruit juice": _forms("glass of grapefruit juice,glasses of grapefruit juice/grape fruit juice"),
    "tomato juice": _forms("glass of tomato juice,glasses of tomato juice"), "smoothie": _forms("fruit smoothie/smoothy,smoothys"),
    "cola": _forms("coke/glass of cola,glasses of cola/can of coke,cans of coke"), "ginger ale": _forms("glass of ginger ale,glasses of ginger ale"),
    "water": _forms("glass of water,glasses of water/bottle of water,bottles of water/still water/tap water/cup of water,cups of water"),
    "sparkling water": _forms("fizzy water/soda water/bottle of sparkling water,bottles of sparkling water/mineral water"),
    "muffin": _forms("fresh muffin/plain muffin"), "blueberry muffin": _forms("blue berry muffin/muffin with blueberries,muffins with blueberries"),
    "chocolate muffin": _forms("double chocolate muffin/chocolate chip muffin/choc muffin/choc chip muffin"),
    "banana muffin": _forms("banana nut muffin/banana walnut muffin"),
    "apple bran muffin": _forms("bran muffin/apple and bran muffin/apple muffin"),
    "lemon poppyseed muffin": _forms("poppyseed muffin/poppy seed muffin/lemon poppy seed muffin/lemon muffin/lemon poppy muffin"),
    "carrot muffin": _forms("carrot and walnut muffin"), "pumpkin muffin": _forms("pumpkin spice muffin"), "corn muffin": _forms("cornbread muffin/corn bread muffin"),
    "bagel": _forms("bagle/fresh bagel/beigel"), "croissant": _forms("butter croissant/crossaint/croissont/plain croissant"),
    "chocolate croissant": _forms("pain au chocolat,pains au chocolat/choc croissant/chocolate crossaint"),
    "almond croissant": _forms("croissant with almonds,croissants with almonds"),
    "toast": _forms("piece of toast,pieces of toast/slice of toast,slices of toast/round of toast,rounds of toast"),
    "scone": _forms("fruit scone/english scone/plain scone"), "english muffin": _forms("english-muffin"), "pretzel": _forms("soft pretzel/pretzl"),
    "waffle": _forms("belgian waffle/waffel"), "pancakes": (("pancake", "pancakes"), ("stack of pancakes", "stacks of pancakes"), ("plate of pancakes", "plates of pancakes")),
    "cookie": _forms("biscuit/cooky,cookies/sugar cookie"), "chocolate chip cookie": _forms("choc chip cookie/chocolate cookie/choc-chip cookie"),
    "oatmeal cookie": _forms("oat cookie/oatmeal raisin cookie/oatmeal biscuit"), "brownie": _forms("chocolate brownie/fudge brownie/browny,brownies"),
    "doughnut": _forms("donut/dough nut/glazed donut/doughnut ring"), "cinnamon roll": _forms("cinnamon bun/cinnamon swirl/cinnamon bun roll"),
    "danish": (("danish pastry", "danish pastries"), ("fruit danish", "fruit danishes"), ("pastry", "pastries")),
    "banana bread": _forms("slice of banana bread,slices of banana bread/banana loaf,banana loaves/piece of banana bread,pieces of banana bread"),
    "cake": _forms("piece of cake,pieces of cake/slice of cake,slices of cake"),
    "chocolate cake": _forms("piece of chocolate cake,pieces of chocolate cake/slice of chocolate cake,slices of chocolate cake/fudge cake"),
    "carrot cake": _forms("slice of carrot cake,slices of carrot cake/piece of carrot cake,pieces of carrot cake"),
    "cheesecake": _forms("cheese cake/slice of cheesecake,slices of cheesecake/piece of cheesecake,pieces of cheesecake/new york cheesecake"),
    "lemon cake": _forms("lemon drizzle/lemon drizzle cake/slice of lemon cake,slices of lemon cake"),
    "apple pie": _forms("slice of apple pie,slices of apple pie/piece of apple pie,pieces of apple pie/apple tart"),
    "ice cream": _forms("scoop of ice cream,scoops of ice cream/vanilla ice cream/icecream"), "yogurt": _forms("yoghurt/greek yogurt/pot of yogurt,pots of yogurt"),
    "sandwich": (("sandwhich", "sandwhiches"), ("sarnie", "sarnies"), ("club sandwich", "club sandwiches")),
    "cheese sandwich": (("grilled cheese", "grilled cheeses"), ("grilled cheese sandwich", "grilled cheese sandwiches"), ("cheese toastie", "cheese toasties")),
    "ham sandwich": (("ham sarnie", "ham sarnies"), ("sandwich with ham", "sandwiches with ham")),
    "ham and cheese sandwich": (("ham and cheese", "ham and cheeses"), ("ham cheese sandwich", "ham cheese sandwiches"), ("ham and cheese toastie", "ham and cheese toasties")),
    "egg sandwich": (("egg salad sandwich", "egg salad sandwiches"), ("egg mayo sandwich", "egg mayo sandwiches")),
    "tuna sandwich": (("tuna melt", "tuna melts"), ("tuna salad sandwich", "tuna salad sandwiches")),
    "chicken sandwich": (("chicken club", "chicken clubs"), ("grilled chicken sandwich", "grilled chicken sandwiches")),
    "avocado toast": _forms("avo toast/avocado on toast,avocados on toast/toast with avocado,toasts with avocado"),
}  # fmt: skip

SIZE_WORDS: Mapping[str, Forms] = {
    "extra-large": ("extra large", "extra-large", "xl", "extra big"), "large": ("large", "big", "lg"), "small": ("small", "little"),
    "medium": ("medium", "mid size", "medium sized"), "single": ("single", "1 shot"), "double": ("double", "double shot", "dbl"),
    "triple": ("triple", "triple shot"), "quad": ("quad", "quadruple", "quad shot"), "mini": ("mini", "tiny"),
    "regular": ("regular", "regular sized", "normal sized"), "venti": ("venti", "venti", "vente"), "grande": ("grande", "grande", "grand"),
}  # fmt: skip
"""Sizes with several names; other sizes have one."""

MILK_WORDS: Mapping[str, Forms] = {
    "whole milk": ("whole milk", "full fat milk", "full cream milk", "whole"),
    "2% milk": ("two percent milk", "2% milk", "2 percent", "two percent", "two per cent milk", "2%"),
    "1% milk": ("one percent milk", "1% milk", "one percent", "1 percent milk", "1%"),
    "low-fat milk": ("low fat milk", "semi skimmed milk", "low-fat milk", "reduced fat milk", "lowfat"),
    "nonfat milk": ("nonfat milk", "skim milk", "skinny", "non fat", "fat free milk", "skimmed milk", "nonfat", "non-fat", "skim"),
    "oat milk": ("oat milk", "oat", "oatmilk", "oat"), "soy milk": ("soy milk", "soy", "soya milk", "soya", "soymilk"),
    "almond milk": ("almond milk", "almond", "almond", "almondmilk"), "coconut milk": ("coconut milk", "coconut", "coco milk"),
    "rice milk": ("rice milk", "rice milk", "rice-milk"),
    "lactose-free milk": ("lactose free milk", "lactose-free milk", "lactose free", "dairy free milk"),
}  # fmt: skip

SWEET_WORDS: Mapping[str, Forms] = {
    "sugar": ("sugar", "sugar", "white sugar"), "sugar in the raw": ("sugar in the raw", "raw sugar"), "sweet n low": ("sweet n low", "sweet'n low", "sweet and low"),
    "sweetener": ("sweetener", "artificial sweetener", "sweetner"), "agave": ("agave", "agave syrup", "agave nectar"),
}  # fmt: skip

STANDS: Mapping[str, tuple[Forms, Forms]] = {
    "iced": (("iced", "iced", "ice cold", "ice"), ("iced", "on ice", "over ice", "make it iced", "served iced", "as an iced one")),
    "hot": (("hot", "hot", "nice hot"), ("hot", "served hot", "make it hot")),
    "extra hot": (("extra hot", "very hot", "piping hot", "really hot"), ("extra hot", "very hot", "piping hot", "make it extra hot")),
    "warm": (("warm", "warm", "not too hot"), ("warm", "served warm", "not too hot")), "lukewarm": (("lukewarm", "tepid"), ("lukewarm", "tepid")),
    "decaf": (("decaf", "decaf", "decaffeinated", "caffeine free", "de-caf"), ("decaf", "decaf please", "decaffeinated", "without caffeine")),
    "half caf": (("half caf", "half-caf", "half decaf", "half caff"), ("half caf", "half caff", "half decaf", "half-caf")),
    "one third caf": (("one third caf", "1/3 caf", "third caf"), ("one third caf", "1/3 caf")),
    "two thirds caf": (("two thirds caf", "2/3 caf", "two third caf"), ("two thirds caf", "2/3 caf")),
    "black": (("black", "plain black"), ("black", "black please", "just black")),
    "strong": (("strong", "really strong", "very strong"), ("strong", "nice and strong", "make it strong")), "weak": (("weak", "mild", "not so strong"), ("weak", "not too strong", "on the weak side")),
    "dry": (("dry", "dry"), ("dry", "make it dry")), "wet": (("wet", "wet"), ("wet", "make it wet")), "unsweetened": (("unsweetened",), ("unsweetened",)),
    "blended": (("blended",), ("blended",)),
    "to go": ((), ("to go", "to take away", "takeaway", "for takeout", "take out", "to take with me")),
    "for here": ((), ("for here", "to stay", "to drink here", "to have here", "in a for here cup", "for eating in")),
    "with room": ((), ("with room", "leave room", "with some room", "with room at the top", "leave some room")), "lid": ((), ("with a lid", "with lid", "put a lid on it", "lid on")),
    "no lid": ((), ("no lid", "without a lid", "lid off")), "straw": ((), ("with a straw", "with straw", "and a straw")), "no straw": ((), ("no straw", "without a straw")),
    "warmed": (("warmed", "warmed up", "heated", "warm"), ("warmed", "warmed up", "heated up", "heated", "warm it up please", "warm")),
    "toasted": (("toasted", "toasted", "lightly toasted"), ("toasted", "toasted please", "toast it")), "cut in half": (("halved",), ("cut in half", "cut in two", "halved", "sliced in half", "sliced in two")),
    "sliced": (("sliced", "sliced"), ("sliced", "cut into slices", "sliced up", "in slices")), "gluten-free": (("gluten free", "gluten-free", "gf"), ("gluten free", "no gluten")), "vegan": (("vegan", "plant based"), ("vegan",)),
    "plain": (("plain",), ("plain",)), "sesame": (("sesame", "sesame seed"), ("sesame",)), "everything": (("everything",), ("everything",)),
    "whole wheat": (("whole wheat", "wholewheat", "wholemeal"), ("whole wheat",)),
}  # fmt: skip
"""Wordings of extras without an amount, before and after the noun."""
