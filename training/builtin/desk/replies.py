"""The replies of the order app, from a small fixed vocabulary that a small model can learn."""

from collections.abc import Iterable, Sequence

from taiwa.models.builtin.order_app import COUNTED, MEASURES, OrderLine
from training.builtin.desk.english import plural
from training.builtin.desk.japanese_words import ADDED, NOUNS, SHOWN, SIZE_WORDS
from training.builtin.desk.menu import MENU
from training.builtin.desk.wishes import DRINKS

__all__ = ["ANSWERS", "kinds", "listed", "missing"]

ANSWERS = {
    "en": {
        "more": "Anything else?", "now": "Now: {x}.", "off": "Taken off: {x}.", "empty": "Nothing is ordered yet. What would you like?", "gone": "Nothing is ordered now. What would you like?",
        "so_far": "So far: {x}.", "sum": "So far that is {x} dollars.", "total": "The total is {x} dollars. Thank you!", "price": "{x}: {p} dollars.", "have": "Yes, {x}: {p} dollars.",
        "menu": "We have coffee, tea, cold drinks, muffins, bagels, cakes and sandwiches. What would you like?",
        "popular": "Our cappuccino is popular, and so is the blueberry muffin. What would you like?",
        "coffees": "We have {x} and more. What would you like?", "cancelled": "The order is cancelled.", "hello": "Hello! What would you like?", "hello_more": "Hello! Anything else?", "thanks": "You are welcome!",
        "bye": "Goodbye!", "warm": "A coffee, a tea or a hot chocolate?", "cool": "A cold brew, an iced tea or a lemonade?", "drink": "A coffee, a tea or a juice?", "eat": "A muffin, a bagel or a sandwich?",
        "sweet": "A muffin, a cookie or a cake?", "usual": "What would you like?", "yes": "What would you like?", "complaint": "I am sorry to hear that. What can I do for you?", "remark": "Good to know. What would you like?",
        "foreign": "I speak English and Japanese. What would you like?", "offtopic": "I can only take orders here. What would you like?",
        "missing": "Sorry, we have no {x}.", "absent": "There is no {x} on your order.", "which": "Which one: {x}?", "which_change": "All right. What shall I change?",
    },
    "ja": {
        "more": "ほかにはいかがですか?", "now": "{x}に変更しました。", "off": "{x}を取り消しました。", "empty": "まだご注文がありません。何になさいますか?", "gone": "ご注文はなくなりました。何になさいますか?",
        "so_far": "ここまでのご注文は{x}です。", "sum": "ここまでで{x}ドルです。", "total": "合計は{x}ドルです。ありがとうございます!", "price": "{x}は{p}ドルです。", "have": "はい、{x}は{p}ドルです。",
        "menu": "コーヒー、お茶、冷たい飲み物、マフィン、ベーグル、ケーキ、サンドイッチがございます。何になさいますか?",
        "popular": "カプチーノとブルーベリーマフィンが人気です。何になさいますか?",
        "coffees": "{x}などがございます。何になさいますか?", "cancelled": "ご注文をキャンセルしました。", "hello": "いらっしゃいませ。何になさいますか?", "hello_more": "いらっしゃいませ。ほかにはいかがですか?", "thanks": "どういたしまして!",
        "bye": "またお越しください!", "warm": "コーヒー、紅茶、ホットチョコレートのどれになさいますか?", "cool": "水出しコーヒー、アイスティー、レモネードのどれになさいますか?", "drink": "コーヒー、お茶、ジュースのどれになさいますか?",
        "eat": "マフィン、ベーグル、サンドイッチのどれになさいますか?", "sweet": "マフィン、クッキー、ケーキのどれになさいますか?", "usual": "何になさいますか?", "yes": "何になさいますか?",
        "complaint": "申し訳ございません。いかがいたしましょうか?", "remark": "さようでございますか。何になさいますか?", "foreign": "英語と日本語で承ります。何になさいますか?", "offtopic": "ご注文だけ承っております。何になさいますか?",
        "missing": "申し訳ありませんが、{x}はございません。", "absent": "ご注文に{x}はありません。", "which": "どちらですか、{x}?", "which_change": "かしこまりました。何を変更しますか?",
    },
}  # fmt: skip
MEASURES_JA = {"no": "なし", "light": "少なめ", "extra": "多め", "half": "半分"}
FLAVOURED = " syrup"


def listed(code: str, lines: Iterable[OrderLine], *, choice: bool = False) -> str:
    """Format the lines of an order.

    >>> listed("en", [OrderLine(1, "latte", "grande", 2, ("iced",)), OrderLine(2, "bagel", "", 1)])
    '2 grande lattes (iced) and 1 bagel'
    >>> listed("ja", [OrderLine(1, "latte", "grande", 2, ("iced",)), OrderLine(2, "bagel", "", 1)])
    'グランデのラテ2つ(アイス)とベーグル1つ'
    """
    said = [(_english if code == "en" else _japanese)(line) for line in lines]
    joint, last = (", ", " or " if choice else " and ") if code == "en" else ("、", "か" if choice else "と")
    return joint.join(said[:-1]) + (last if len(said) > 1 else "") + said[-1]


def _english(line: OrderLine) -> str:
    size = f"{line.size} " if line.size else ""
    name = plural(line.name) if line.quantity > 1 else line.name
    options = f" ({', '.join(line.options)})" if line.options else ""
    return f"{line.quantity} {size}{name}{options}"


def _japanese(line: OrderLine) -> str:
    size = f"{SIZE_WORDS[line.size][0]}の" if line.size else ""
    unit = "つ" if line.quantity < 10 else "杯" if MENU[line.name].kind in DRINKS else "個"
    options = f"({'、'.join(map(_option, line.options))})" if line.options else ""
    return f"{size}{MENU[line.name].japanese}{line.quantity}{unit}{options}"


def _option(option: str) -> str:
    """Return an option in Japanese: `2 vanilla syrup` is バニラシロップ2."""
    if option in SHOWN:
        return SHOWN[option]
    measure, _, name = option.partition(" ")
    if option in COUNTED or not (measure in MEASURES or measure.isdigit()):
        measure, name = "", option
    said = ADDED[name][0] + ("シロップ" if name.endswith(FLAVOURED) else "")
    return said + MEASURES_JA.get(measure, measure)


def missing(code: str, names: Sequence[str]) -> str:
    """Say that these items are not available."""
    joint = " or " if code == "en" else "や"
    return ANSWERS[code]["missing"].replace("{x}", joint.join(names))


def kinds(code: str, kind: str) -> str:
    """Draw a few dishes of one kind."""
    dishes = [dish for dish in MENU.values() if dish.kind == kind][:6]
    if code == "en":
        return ", ".join(dish.name for dish in dishes)
    return "、".join(NOUNS[dish.name][0] for dish in dishes)
