"""Items that are not on the menu: real nouns and made-up ones."""

from random import Random

from training.builtin.desk.wording import an
from training.builtin.noise import number_ja, number_words

__all__ = ["unknown"]

THINGS = """pizza|burger|hamburger|cheeseburger|hot dog|steak|beer|pint of lager|glass of wine|whisky|cocktail|sushi roll|burrito|taco|kebab|curry|soup of the day|caesar salad|
salad|omelette|pork chop|lobster|oyster|chicken wing|spring roll|dumpling|milkshake|energy drink|protein bar|lollipop|chewing gum|bicycle|umbrella|ladder|hammer|screwdriver|
chainsaw|trampoline|lawn chair|wheelbarrow|garden hose|hedge trimmer|tractor|motorbike|helicopter|rocket|spaceship|submarine|elephant|giraffe|kitten|goldfish|parrot|horse|unicorn|dragon|
dinosaur|penguin|oak tree|pine tree|cactus|rose bush|sofa|armchair|wardrobe|lamp|carpet|mattress|television|laptop|printer|phone charger|keyboard|battery|light bulb|fridge|oven|
washing machine|vacuum cleaner|pair of socks|winter coat|hat|raincoat|wedding dress|boot|sneaker|wallet|passport|train ticket|newspaper|magazine|dictionary|novel|notebook|pencil|stapler|guitar|violin|
trumpet|drum kit|piano|football|tennis racket|skateboard|surfboard|tent|sleeping bag|compass|telescope|microscope|brick|bag of cement|bucket of paint|door handle|window|roof tile|swimming pool|
haircut|massage|car wash|tyre|spark plug|gallon of petrol|house|castle|island|bridge|mountain|moon rock|time machine|crystal ball|magic wand|toothbrush|bar of soap|shampoo|towel|
bottle of aspirin|plaster|wheelchair|balloon|birthday card|candle|stuffed bear|yo-yo|jigsaw puzzle|chess board|pack of cards|bowl of ramen|plate of spaghetti|lasagna|bowl of rice|fish and chips|
potato salad|grilled salmon|turkey leg|caviar|truffle|pineapple|watermelon|banana split|bag of crisps|box of cereal|kombucha|coconut water|hot sauce|gin and tonic|shot of tequila|cigar|lottery ticket|sledgehammer|snow plough|weed whacker|riding mower|leaf blower|christmas tree|palm tree|shrub"""
THINGS_JA = """ピザ|ハンバーガー|ラーメン|うどん|そば|カレーライス|寿司|刺身|ビール|ワイン|日本酒|ウイスキー|焼き鳥|天ぷら|とんかつ|餃子|チャーハン|パスタ|ステーキ|サラダ|フライドポテト|おにぎり|お弁当|味噌汁|たこ焼き|お好み焼き|牛丼|オムライス|
ホットドッグ|タコス|自転車|傘|はしご|ハンマー|芝刈り機|チェーンソー|トラクター|バイク|ヘリコプター|ロケット|象|キリン|子猫|金魚|オウム|馬|恐竜|ペンギン|松の木|サボテン|ソファ|椅子|ランプ|じゅうたん|テレビ|パソコン|プリンター|充電器|電池|電球|冷蔵庫|洗濯機|掃除機|靴下|コート|帽子|靴|
財布|切符|新聞|雑誌|辞書|ノート|鉛筆|ギター|バイオリン|太鼓|ピアノ|サッカーボール|ラケット|テント|寝袋|望遠鏡|れんが|ペンキ|窓|プール|タイヤ|ガソリン|家|お城|橋|山|タイムマシン|歯ブラシ|石鹸|タオル|薬|風船|ろうそく|ぬいぐるみ|将棋盤|トランプ|パイナップル|スイカ|ポップコーン|宝くじ|たばこ|掃除道具"""
NOUNS = tuple(THINGS.replace("\n", "").split("|"))
NOUNS_JA = tuple(THINGS_JA.replace("\n", "").split("|"))
STARTS = (
    "b bl br c ch cl d dr f fl fr g gl gr h j k kl m n p pl pr qu r s sk sl sn sp st t tr tw v w z zw sch th".split()
)
MIDDLES = "a e i o u oo ee ai ou".split()
ENDS = "b bble d dge ff l ll lt m mp nd ng nk p pp r rk rn sh sk sp st tch x zzle ster ton let ling".split()
KANA = "カキクケコサスセタチツテトナニヌネノハヒフヘマミムメモラリルレロワガギグゴザズダドバビブボパピプポ"
LOOKS = (
    "",
    "",
    "",
    "",
    "",
    "big ",
    "large ",
    "tall ",
    "grande ",
    "small ",
    "red ",
    "used ",
    "new ",
    "double ",
    "fresh ",
    "cheap ",
    "iced ",
    "wooden ",
    "warm ",
    "venti ",
)


def unknown(random: Random, code: str) -> tuple[str, str]:
    """Return an item that is not on the menu, as the guest asks for it and as the reply names it."""
    if code == "ja":
        name = random.choice(NOUNS_JA) if random.random() < 0.8 else _made_up_ja(random)
        return (
            f"{name}{random.choice(('を', '', ''))}{number_ja(random, random.choice((1, 1, 2, 3)), random.choice('つ個つ'))}",
            name,
        )
    name = random.choice(NOUNS) if random.random() < 0.75 else _made_up(random)
    quantity = random.choice((1, 1, 1, 2, 2, 3, 4, 10))
    many = name if quantity == 1 else _several(name)
    look = random.choice(LOOKS)
    number = an(look or name) if quantity == 1 and random.random() < 0.8 else number_words(random, quantity, digits=0.2)
    return f"{number} {look}{many}", many


def _several(name: str) -> str:
    head, of, rest = name.partition(" of ")
    if not of:
        head, of, rest = name.partition(" and ")
    return head + ("es" if head.endswith(("ch", "sh", "s", "x", "z")) else "s") + of + rest


def _made_up(random: Random) -> str:
    parts = [random.choice(STARTS) + random.choice(MIDDLES) for _ in range(random.choice((1, 1, 2)))]
    return "".join(parts) + random.choice(ENDS)


def _made_up_ja(random: Random) -> str:
    return "".join(random.choice(KANA) for _ in range(random.choice((2, 3, 3, 4)))) + random.choice(
        ("", "", "ン", "ー")
    )
