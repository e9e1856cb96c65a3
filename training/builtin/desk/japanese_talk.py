"""Complete Japanese orders: the words around the items."""

from collections.abc import Sequence
from random import Random

from training.builtin.desk.wording import fill
from training.builtin.noise import noisy_ja, number_ja

__all__ = ["divided", "ordering", "shared", "written"]

HELLO = """[|||||すみません、|すいません、|こんにちは、|こんにちは。|おはようございます。|えっと、|えーと、|あの、|はい、|じゃあ、|じゃ、|では、|それでは、|うーんと、|まず、|とりあえず、|注文お願いします。|注文いいですか。|どうも、
|こんばんは、|ええと、|そうですね、|お願いします、|私は|僕は|今日は|私たちは]"""
MORE = "[あと、|あと|それと|それから、|追加で|ついでに|さらに|それに|あっ、あと|もう一つ、|加えて|他に|あとは|追加で、|すみません、あと|やっぱり|それとですね、]"
YES = "[はい、|うん、|ええ、|あ、はい。|はい。|そうですね、|じゃあ、]"
ASK = """[お願いします|お願いします|お願いします|ください|ください|下さい|をください|をお願いします|をお願いできますか|をお願いします|頼みます|を頼みます|もらえますか|をもらえますか|いただけますか|をいただけますか|にします|が欲しいです|がほしいです|を注文します|を注文したいです
|を注文で|でお願いします|ちょうだい|を頼めますか|をいただきます|をもらいます|をお願い|お願い|よろしくお願いします|が飲みたいです|で|にしようかな|をひとまず|を作ってもらえますか|を入れてください|を頂戴|追加してください|を追加で|もほしい|もお願いします||||]"""
AFTER_DE = "[お願いします|お願いします|ください|お願いできますか|頼みます|お願い|いただけますか||||よろしく|もらえますか|よろしくお願いします]"
DONE = """[以上です|以上で|以上でお願いします|それだけです|それで全部です|これで全部です|これで以上です|それだけで|それで以上です|注文は以上です|もう大丈夫です|あとは大丈夫です|それで結構です|ほかはいりません|他にはありません|これで終わりです|それでお願いします、以上|以上になります]"""
BETWEEN = ("、", "と", "と", "、それと", "、あと", "、それから", " ", "、あとは", "に", "。それと", "、ついでに")
PAUSES = ("、それと", "、あと", "、", "。それと", "。あと", " ", "、それから", "。それから", "、そして")


def phrases_joined(random: Random, said: Sequence[str]) -> str:
    """Return several items in one sentence."""
    text = said[0]
    usual = random.choice(BETWEEN)
    for more in said[1:]:
        between = usual if random.random() < 0.7 else random.choice(BETWEEN)
        if between in ("と", "に") and text[-1] in "でてもす":
            between = random.choice(PAUSES)
        text += between + more
    return text


def ordering(random: Random, said: Sequence[str], mood: str) -> str:
    """Return an order in words. `mood` is `first`, `more` or `yes` (an answer to "anything else?"); `done` ends the order."""
    items = phrases_joined(random, said)
    lead = (
        MORE if "more" in mood and random.random() < 0.7 else YES if "yes" in mood and random.random() < 0.6 else HELLO
    )
    over = items.endswith(("ます", "です", "ださい", "せん", "結構です"))
    ending = "" if over else AFTER_DE if items[-1] in "でてもす" else ASK
    text = fill(random, lead) + items + fill(random, ending)
    if "done" in mood:
        text += random.choice(("。", "、", " ", "。")) + fill(random, DONE)
    return written(random, text)


def written(random: Random, text: str, mark: str = "。", level: float = 0.08) -> str:
    """Return the text as a guest types it."""
    chance = random.random()
    if chance < 0.5 and text[-1] not in "。?!":
        text += "?" if text.endswith("か") and random.random() < 0.5 else mark
    return noisy_ja(random, text, level) if chance > 0.3 else text


def shared(random: Random, parts: list[tuple[str, str]]) -> str:
    """Return an instruction that applies to all items."""
    return f"、{fill(random, '[全部|すべて|両方|どれも|全て]')}" + "、".join(said for said, _ in parts)


def divided(random: Random, base: str, parts: Sequence[tuple[int, str]]) -> str:
    """Return several of one item that differ."""
    if all(number == 1 for number, _ in parts) and random.random() < 0.35:
        names = ("一つ目は", "二つ目は", "三つ目は", "四つ目は", "五つ目は")
        said = [names[at] + (text.lstrip("、 ") or "普通で") for at, (_, text) in enumerate(parts)]
    else:
        said = []
        for at, (number, text) in enumerate(parts):
            count = "もう" + number_ja(random, number) if at and random.random() < 0.3 else number_ja(random, number)
            said.append(f"{count}は{text.lstrip('、 ') or fill(random, '[普通で|そのままで|何もなしで|普通のを]')}")
    return base + random.choice(("、", "。", " ")) + "、".join(said)
