"""Random names, codes and numbers, so that the model learns to copy and does not memorise."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

__all__ = ["Slots"]

STARTS = "b br c ch d dr f fl g gl h j k kr l m n p pl qu r s sch sk st t th tr v w z".split()
MIDDLES = "a e i o u ai ea ei ie oa ou y".split()
ENDS = "l n r s t x m nd lt rk sk th ck mp rn v d g".split()
FIRST = """Aiko Alba Amir Anouk Arvid Asha Bela Bente Bruno Carla Cem Chidi Clara Dario Dunja Edda Elif Emre Enzo Farah Femi Filip Gita
Goran Hana Hugo Ilse Imran Ines Ivo Jana Jens Jiro Kaja Kofi Lale Lars Leyla Lina Luca Maren Mateo Mina Nadia Niko Noor Odile Olga Omar
Pavel Petra Priya Quinn Rafa Rania Rosa Ruben Sami Sanna Selma Sora Tariq Tess Tilda Tomas Uma Vera Viktor Wanda Xenia Yara Yusuf Zoe
Anna Ben Carol David Emma Frank Grace Henry Iris James Kate Liam Mary Nora Oscar Paul Rita Sam Tom Victor""".split()
COUNTRIES = """Norway Japan Chile Ghana Canada India Poland Portugal Turkey Vietnam Peru Kenya Greece Iceland Mexico Brazil Estonia
Croatia Morocco Thailand Austria Belgium China Denmark Egypt Finland Italy Korea Latvia Malta Nepal Oman Qatar Romania Serbia Spain
Sweden Uganda Ukraine Wales""".split()
MONTHS = "January February March April May June July August September October November December".split()
WARES = "Desk Flow Port Track Sheet Mail Hub Scan Sign Vault Grid Note Point Cast Plan Pay Time".split()
FIRMS = "Works Labs Group Partners Foods Motors Bank Systems Press Trading Optics Energy".split()
TEAMS = "payroll facilities legal purchasing travel IT quality sales logistics design support marketing research training finance".split()
DISHES = "soup stew bread salad dumplings pie noodles curry porridge cake".split()
BEASTS = "lizards frogs owls beetles deer foxes whales turtles finches moths".split()
TITLES = "The {} Road|A Song for {}|{} Rising|The Last {}|Letters from {}|{}|Beyond {}|The {} Affair|{} and I|Winter in {}".split(
    "|"
)
FEASTS = "{} Festival|Feast of {}|{} Cup|{} Marathon|{} Lantern Night".split("|")
SURNAMES_JA = """佐々木 山口 松本 井上 木村 林 斎藤 清水 山崎 阿部 森 池田 橋本 石川 前田 藤田 岡田 後藤 長谷川 村上 近藤 坂本 遠藤
青木 藤井 西村 福田 太田 三浦 藤原 岡本 中島 小野 田村 竹内 金子 和田 中山 石田 上田 森田 原 柴田 酒井 工藤 横山 宮崎 宮本""".split()
SITES_JA = """札幌 仙台 新潟 金沢 静岡 浜松 名古屋 神戸 岡山 広島 高松 松山 福岡 熊本 那覇 秋田 盛岡 水戸 千葉 川崎 長野 岐阜 津 奈良 和歌山
鳥取 松江 山口 徳島 高知 大分 宮崎 青森 山形 甲府 富山 福井 姫路 倉敷 久留米""".split()
PARTS_JA = "北 南 東 西 上 中 白 黒 青 赤 高 長 大 小 古 新 松 竹 桜 石 森 川 山 田 浜 島 谷 沢 原 野 崎 岡 橋 宮 沼 坂 津".split()
KANA = "ア イ ウ エ オ カ キ ク ケ コ サ シ ス セ ソ タ チ ツ テ ト ナ ニ ネ ノ ハ ヒ フ ホ マ ミ ム メ モ ヤ ユ ヨ ラ リ ル レ ロ ガ ゴ ザ ジ ダ デ ド バ ビ ブ ベ ボ パ ピ プ ポ".split()
COUNTRIES_JA = "韓国 台湾 タイ ベトナム インド ドイツ フランス イタリア カナダ ブラジル メキシコ オランダ スペイン 中国 シンガポール トルコ ペルー ケニア".split()
TEAMS_JA = "総務 人事 経理 法務 営業 購買 品質保証 情報システム 広報 物流 開発 企画 製造 設計".split()
SURNAMES_ZH = "王 李 张 刘 陈 杨 赵 黄 周 吴 徐 孙 胡 朱 高 林 何 郭 马 罗 梁 宋 郑 谢 韩 唐 冯 于 董 萧".split()
GIVEN_ZH = "伟 芳 娜 敏 静 丽 强 磊 军 洋 勇 艳 杰 娟 涛 明 超 秀英 霞 平 刚 桂英 建华 文博 子涵 雨桐 浩然 思远".split()
SITES_ZH = "成都 武汉 南京 西安 苏州 杭州 青岛 大连 厦门 长沙 郑州 天津 重庆 沈阳 昆明 合肥 无锡 宁波 佛山 东莞".split()
PARTS_ZH = "云 海 山 河 金 银 星 月 天 华 東 安 明 光 新 宏 立 信 泰 顺 丰 盛 远 通 达 瑞 祥 博 智 联".replace(
    "東", "东"
).split()
COUNTRIES_ZH = "日本 韩国 泰国 越南 印度 德国 法国 意大利 加拿大 巴西 墨西哥 荷兰 西班牙 新加坡 土耳其 英国".split()
TEAMS_ZH = "人事 财务 法务 行政 采购 销售 市场 研发 质量 物流 信息 客服".split()
TOWNS = """Bergen Utrecht Porto Leeds Cork Ghent Lyon Turin Graz Basel Malmo Turku Riga Gdansk Brno Split Patras Izmir Haifa Cairo Accra
Nairobi Durban Pune Hanoi Cebu Osaka Busan Perth Quito Lima Boston Denver Austin Seattle Toronto Calgary""".split()
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"


def word(random: Random) -> str:
    """Return a made-up word."""
    pieces = [random.choice(STARTS) + random.choice(MIDDLES) for _ in range(random.choice((1, 2, 2, 3)))]
    return "".join(pieces) + random.choice((*ENDS, "", "o", "a", "ia"))


def _capital(random: Random) -> str:
    return word(random).capitalize()


def _place(random: Random) -> str:
    return random.choice(TOWNS) if random.random() < 0.3 else _capital(random)


def _code(random: Random) -> str:
    letters = "".join(random.choices(LETTERS, k=random.choice((1, 2, 2, 3))))
    digits = str(random.randrange(10, 99_999))
    return letters + random.choice(("-", "", "-", ".", "/")) + digits


def _person(random: Random) -> str:
    kind = random.random()
    if kind < 0.35:
        return random.choice(FIRST)
    if kind < 0.5:
        return random.choice(("Dr", "Prof")) + " " + _capital(random)
    return random.choice((random.choice(FIRST), _capital(random))) + " " + _capital(random)


def _product(random: Random) -> str:
    kind = random.random()
    if kind < 0.3:
        return _capital(random) + random.choice(WARES)
    if kind < 0.45:
        return _code(random)
    if kind < 0.6:
        return f"{_capital(random)} {random.choice((str(random.randrange(2, 900)), random.choice(LETTERS) + str(random.randrange(2, 99))))}"
    if kind < 0.75:
        return random.choice(WARES) + _capital(random)
    return _capital(random)


def _org(random: Random) -> str:
    return _capital(random) + (f" {random.choice(FIRMS)}" if random.random() < 0.5 else "")


def _money(random: Random) -> str:
    number = random.choice((random.randrange(5, 100), random.randrange(100, 1_000), random.randrange(1, 90) * 500))
    written = f"{number:,}" if random.random() < 0.5 else str(number)
    return random.choice(("{} euro", "{} pounds", "{} dollars", "€{}", "${}", "{} EUR", "£{}")).format(written)


def _date(random: Random) -> str:
    day, month = random.randrange(1, 29), random.choice(MONTHS)
    return random.choice((f"{day} {month}", f"{month} {day}", f"{day}.{random.randrange(1, 13)}.", month))


def _titled(patterns: Sequence[str], random: Random) -> str:
    return random.choice(patterns).format(_capital(random))


def _paired(words: Sequence[str], random: Random) -> str:
    return f"{word(random)} {random.choice(words)}"


def _number(random: Random) -> str:
    return str(random.choice((random.randrange(2, 13), random.randrange(2, 60), random.randrange(2, 400))))


def _year(random: Random) -> str:
    return str(random.randrange(1890, 2028))


def _late(random: Random) -> str:
    return str(random.randrange(2012, 2028))


def _katakana(random: Random) -> str:
    made = "".join(random.choices(KANA, k=random.choice((2, 3, 3, 4, 5))))
    return made + random.choice(("", "", "ン", "ー", "ス", "ル"))


def _kanji(random: Random) -> str:
    return "".join(random.sample(PARTS_JA, 2))


def _product_ja(random: Random) -> str:
    return random.choice((_product, _katakana, _katakana))(random)


def _person_ja(random: Random) -> str:
    name = random.choice((*SURNAMES_JA, _kanji(random), _kanji(random)))
    return name + random.choice(("さん", "さん", "部長", "課長", "先生"))


def _org_ja(random: Random) -> str:
    return random.choice(("株式会社", "", "")) + random.choice((_kanji, _katakana))(random) + random.choice(("商事", "製作所", "電機", "物産", "食品", "工業"))  # fmt: skip


def _site_ja(random: Random) -> str:
    name = random.choice((random.choice(SITES_JA), _kanji(random)))
    return name + random.choice(("支社", "工場", "営業所", "本社", "オフィス", "研究所", "支店"))


def _town_ja(random: Random) -> str:
    return random.choice((random.choice(SITES_JA), _kanji(random) + random.choice(("市", "町", "村", ""))))


def _money_ja(random: Random) -> str:
    number = random.choice((random.randrange(5, 100) * 100, random.randrange(1, 100) * 1_000))
    return random.choice((f"{number}円", f"{number:,}円", f"{random.randrange(1, 300)}万円"))


def _date_asia(day: str, random: Random) -> str:
    return f"{random.randrange(1, 13)}月{random.randrange(1, 29)}{day}"


def _month_asia(random: Random) -> str:
    return f"{random.randrange(1, 13)}月"


def _person_zh(random: Random) -> str:
    return random.choice(SURNAMES_ZH) + random.choice((*GIVEN_ZH, "经理", "主任", "老师", "工"))


def _pair_zh(random: Random) -> str:
    return "".join(random.sample(PARTS_ZH, 2))


def _org_zh(random: Random) -> str:
    return _pair_zh(random) + random.choice(("科技", "集团", "食品", "贸易", "电子", "公司"))


def _site_zh(random: Random) -> str:
    return random.choice((random.choice(SITES_ZH), _pair_zh(random))) + random.choice(
        ("分公司", "工厂", "办公室", "总部")
    )


def _money_zh(random: Random) -> str:
    return random.choice((f"{random.randrange(1, 90) * 100}元", f"{random.randrange(1, 90)}万元", f"{random.randrange(5, 900)}块"))  # fmt: skip


def _one_of(words: Sequence[str], random: Random) -> str:
    return random.choice(words)


def _suffixed(make: Callable[[Random], str], ends: tuple[str, ...], random: Random) -> str:
    return make(random) + random.choice(ends)


Maker = Callable[[Random], str]
SHARED: Mapping[str, Maker] = {
    "n": _number,
    "code": _code,
    "product": _product,
    "year": _year,
    "year2": _late,
    "word": word,
}
ENGLISH: Mapping[str, Maker] = {
    "site": _place, "town": _place, "town2": _place, "country": partial(_one_of, COUNTRIES), "person": _person,
    "person2": _person, "org": _org, "money": _money, "date": _date, "month": partial(_one_of, MONTHS), "team": partial(_one_of, TEAMS),
    "band": partial(_titled, "The {}s|{}|{} Orchestra|{} Brothers".split("|")), "title": partial(_titled, TITLES),
    "beast": partial(_paired, BEASTS), "illness": partial(_titled, "{} fever|{} syndrome|{} disease|{}itis".split("|")),
    "dish": partial(_paired, DISHES), "gadget": _product, "feast": partial(_titled, FEASTS),
    "river": partial(_titled, "the river {}|the {}|the {} river".split("|")),
    "club": partial(_titled, "the {} Rovers|{} United|the {} Bears|{} FC".split("|")),
}  # fmt: skip
JAPANESE: Mapping[str, Maker] = {
    "site": _site_ja, "town": _town_ja, "town2": _town_ja, "country": partial(_one_of, COUNTRIES_JA), "person": _person_ja,
    "person2": _person_ja, "org": _org_ja, "money": _money_ja, "date": partial(_date_asia, "日"), "month": _month_asia,
    "team": partial(_one_of, TEAMS_JA), "product": _product_ja, "word": _katakana, "gadget": _product_ja,
    "band": partial(_suffixed, _katakana, ("ズ", "楽団", "")), "title": partial(_suffixed, _kanji, ("物語", "の夜", "への道", "")),
    "beast": partial(_suffixed, _katakana, ("ガエル", "ドリ", "ザル", "イルカ")), "illness": partial(_suffixed, _katakana, ("熱", "病", "症候群")),
    "dish": partial(_suffixed, _katakana, ("鍋", "カレー", "そば", "焼き")), "feast": partial(_suffixed, _kanji, ("祭り", "マラソン", "花火大会")),
    "river": partial(_suffixed, _kanji, ("川",)), "club": partial(_suffixed, _katakana, ("FC", "ズ", "クラブ")),
}  # fmt: skip
CHINESE: Mapping[str, Maker] = {
    "site": _site_zh, "town": partial(_one_of, SITES_ZH), "town2": partial(_one_of, SITES_ZH), "country": partial(_one_of, COUNTRIES_ZH),
    "person": _person_zh, "person2": _person_zh, "org": _org_zh, "money": _money_zh, "date": partial(_date_asia, "号"),
    "month": _month_asia, "team": partial(_one_of, TEAMS_ZH), "word": _pair_zh, "gadget": _product,
    "title": partial(_suffixed, _pair_zh, ("传", "之歌", "往事")), "illness": partial(_suffixed, _pair_zh, ("病", "热")),
    "dish": partial(_suffixed, _pair_zh, ("鱼", "面", "鸡")), "beast": partial(_suffixed, _pair_zh, ("鸟", "猴", "蛙")),
    "feast": partial(_suffixed, _pair_zh, ("节", "马拉松")), "river": partial(_suffixed, _pair_zh, ("江", "河")),
    "club": partial(_suffixed, _pair_zh, ("队",)), "band": partial(_suffixed, _pair_zh, ("乐队",)),
}  # fmt: skip
MAKERS: Mapping[str, Mapping[str, Maker]] = {
    language: {**SHARED, **makers} for language, makers in (("en", ENGLISH), ("ja", JAPANESE), ("zh", CHINESE))
}


class Slots(dict[str, str]):
    """Values for the placeholders of a template, drawn on first use and then constant within a sample."""

    def __init__(self, random: Random, language: str) -> None:
        super().__init__()
        self._random, self._language = random, language
        self.made: list[str] = []

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in MAKERS[self._language] or name == "nth"

    def __missing__(self, name: str) -> str:
        if name == "nth":
            number = self._random.randrange(2, 20)
            made = f"{number}{ {2: 'nd', 3: 'rd'}.get(number, 'th') }"
        else:
            made = MAKERS[self._language][name](self._random)
        self.made.append(made)
        self[name] = made
        return made

    def anew(self, *names: str) -> None:
        """Drop some values, so that new ones are drawn on next use."""
        for name in names:
            self.pop(name, None)
