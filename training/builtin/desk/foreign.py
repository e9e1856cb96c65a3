"""Simple orders in French, German, Spanish, Italian and Chinese."""

from collections.abc import Mapping, Sequence
from random import Random

from training.builtin.desk.wishes import Wish
from training.builtin.desk.wording import fill

__all__ = ["DISHES", "NUMBERS", "SIZES", "ZH", "foreign_order"]

FR, DE, ES, IT, ZH = "fr", "de", "es", "it", "zh"
DISHES: Mapping[str, Mapping[str, str]] = {
    FR: {"coffee": "café/cafe/café", "latte": "café au lait/latte", "tea": "thé", "green tea": "thé vert", "hot chocolate": "chocolat chaud", "croissant": "croissant", "chocolate croissant": "pain au chocolat", "orange juice": "jus d'orange", "water": "eau/verre d'eau", "cappuccino": "cappuccino", "espresso": "expresso", "sandwich": "sandwich", "cake": "gâteau"},
    DE: {"coffee": "kaffee/Kaffee", "latte": "milchkaffee/latte", "tea": "tee/Tee", "black tea": "schwarztee", "hot chocolate": "heiße schokolade/kakao", "croissant": "croissant/hörnchen", "apple juice": "apfelsaft", "orange juice": "orangensaft", "water": "wasser", "sparkling water": "sprudel", "cappuccino": "cappuccino", "apple pie": "apfelkuchen", "cheesecake": "käsekuchen", "pretzel": "brezel"},
    ES: {"coffee": "café/cafe", "latte": "café con leche", "tea": "té", "hot chocolate": "chocolate caliente", "orange juice": "zumo de naranja/jugo de naranja", "water": "agua", "americano": "americano", "toast": "tostada", "croissant": "cruasán", "cortado": "cortado", "milk": "leche", "sandwich": "bocadillo"},
    IT: {"espresso": "espresso/caffè", "cappuccino": "cappuccino", "latte macchiato": "latte macchiato", "tea": "tè", "croissant": "cornetto", "water": "acqua", "orange juice": "spremuta d'arancia", "hot chocolate": "cioccolata calda"},
    ZH: {"coffee": "咖啡", "latte": "拿铁", "americano": "美式咖啡", "cappuccino": "卡布奇诺", "green tea": "绿茶", "black tea": "红茶", "hot chocolate": "热巧克力", "orange juice": "橙汁", "water": "水", "mocha": "摩卡", "croissant": "牛角面包/可颂", "muffin": "松饼/玛芬", "bagel": "贝果",
        "sandwich": "三明治", "cake": "蛋糕", "espresso": "浓缩咖啡", "matcha latte": "抹茶拿铁", "lemon tea": "柠檬茶", "iced tea": "冰茶", "cookie": "饼干/曲奇", "cola": "可乐", "apple juice": "苹果汁", "scone": "司康", "doughnut": "甜甜圈",
        "oolong tea": "乌龙茶", "milk": "牛奶", "macchiato": "玛奇朵", "brownie": "布朗尼", "cheesecake": "芝士蛋糕", "flat white": "馥芮白", "cold brew": "冷萃", "jasmine tea": "茉莉花茶"},
}  # fmt: skip
NUMBERS: Mapping[str, Sequence[str]] = {
    FR: ("un/une/1", "deux", "trois", "quatre"), DE: ("ein/einen/eine/1", "zwei", "drei", "vier"), ES: ("un/una/1", "dos", "tres", "cuatro"),
    IT: ("un/una/1", "due", "tre", "quattro"), ZH: ("一杯/一个/1杯", "两杯/两个", "三杯/三个", "四杯"),
}  # fmt: skip
SIZES: Mapping[str, Mapping[str, str]] = {
    FR: {"small": "petit", "large": "grand"}, DE: {"small": "kleinen/kleiner", "large": "großen/große"}, ES: {"small": "pequeño", "large": "gran"},
    IT: {"small": "piccolo"}, ZH: {"small": "小", "large": "大", "medium": "中"},
}  # fmt: skip
FRAMES = {
    FR: "[|||je voudrais |bonjour, |je prends |pour moi |donnez-moi |s'il vous plaît ]{x}[|| s'il vous plaît| svp| merci|, merci]",
    DE: "[|||ich hätte gerne |ich möchte |bitte |hallo, |guten tag, |für mich ]{x}[|| bitte| danke|, bitte]",
    ES: "[|||quiero |hola, |me pone |quisiera |para mí ]{x}[|| por favor| gracias|, por favor]",
    IT: "[|||vorrei |buongiorno, |per me |prendo ]{x}[|| per favore| grazie|, grazie]", ZH: "[|||我要|来|请给我|你好，我要|我想要]{x}[|||，谢谢|吧]",
}  # fmt: skip
AND = {FR: " et ", DE: " und ", ES: " y ", IT: " e ", ZH: "和"}


def foreign_order(random: Random) -> tuple[str, list[Wish]]:
    """Return a simple order and its meaning."""
    code = random.choice((FR, FR, DE, DE, ES, ES, IT, ZH))
    said, meant = [], []
    for name in random.sample(tuple(DISHES[code]), random.choice((1, 1, 1, 2))):
        quantity = random.choice((1, 1, 1, 2, 2, 3, 4))
        number = random.choice(NUMBERS[code][quantity - 1].split("/"))
        called = random.choice(DISHES[code][name].split("/"))
        size, look = "", ""
        if random.random() < 0.25 and quantity == 1 and SIZES[code]:
            size = random.choice(tuple(SIZES[code]))
            look = random.choice(SIZES[code][size].split("/"))
        many = "s" if quantity > 1 and code in (FR, ES) and " " not in called and called[-1] not in "sz" else ""
        said.append((f"{number}{look}{called}" if code == ZH else f"{number} {look} {called}{many}").replace("  ", " "))
        meant.append(Wish(name, size, quantity))
    return fill(random, FRAMES[code]).replace("{x}", AND[code].join(said)), meant
