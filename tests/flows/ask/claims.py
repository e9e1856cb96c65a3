"""Claims about the sentences of the handbook: right ones in other spellings, and wrong ones with one thing changed.

What is changed is a number, its unit or currency, a negation or a name. `python -m tests.flows.ask.claims` prints how many are refused.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from taiwa.apps.catalog import HANDBOOK
from taiwa.flows.ask.quote import EMPHASIS, supports
from taiwa.kernel.text import SENTENCE_END

CHINESE = """员工每年有十五天年假，工作满五年后增加两天。|请在出差前三天提交申请。|实习生不能申请远程办公。|宿舍晚上十一点关门。|会议室可以提前两周预订。
病假超过3天需要医生证明。|访客必须在前台登记。|迟到30分钟以内不扣工资。|报销单应在六十天内提交。|试用期为三个月。|周末可以使用实验室。|实验室里禁止吸烟。
公司为员工提供免费午餐。|加班工资按1.5倍计算。|密码每90天更换一次。|离职需要提前三十天通知。|笔记本电脑可以带回家。|不允许在办公室养宠物。|停车费每月200元。|新员工没有年终奖。
图书馆周一至周五开放。|请假不需要填写纸质表格。|每个部门有两名安全员。|体检每年一次，费用由公司承担。|出国出差必须购买保险。|合同由法务部审核。|食堂早上七点半开始营业。
客户资料不得发送到私人邮箱。|培训费用最高可报销5,000元。|婚假为十天。|工资在每月25日发放。|电话费上限是150元。|未经批准不能安装软件。|灭火器每半年检查一次。|班车会在八点十五分出发。
员工可以借用会议设备。|产假为128天。|请勿在走廊放置杂物。|采购超过一万元需要三家报价。|考勤记录保存两年。"""

AUXILIARY = re.compile(r"\b(may|must|can|will|should|is|are|has to|have to)\b(?! not)")

TOGGLES: dict[str, tuple[tuple[str, str], ...]] = {
    "en": ((r"\b(may|must|can|will|should|is|are|do|does) not\b", r"\1"), (r"\bcannot\b", "can"), (r"\b(may|must|can|will|should|is|are)\b(?! not)", r"\1 not"),
           (r"\bNobody\b", "Everybody"), (r"\bnobody\b", "everybody"), (r"\bNever\b", "Always"), (r"\bnever\b", "always"), (r"\bwithout\b", "with"), (r"\bNo (?=\w)", "Every "), (r"\b[Ee]verybody\b", "nobody")),
    "ja": ((r"できません", "できます"), (r"ありません", "あります"), (r"(?<=[いきぎしちにびみり])ません", "ます"), (r"(?<=[えけせてねべめれげ])ません", "ます"), (r"ないでください", "てください"),
           (r"できます", "できません"), (r"あります", "ありません"), (r"(?<=[いきぎしちにびみりえけせてねべめれげ])ます", "ません"), (r"です。", "ではありません。"), (r"てください", "ないでください")),
    "zh": ((r"不能|不得|不允许|禁止|请勿", "可以"), (r"不需要", "需要"), (r"没有", "有"), (r"不(?=扣)", ""), (r"可以", "不可以"), (r"需要", "不需要"), (r"必须", "不必"), (r"应在", "不应在"),
           (r"有(?=十|两)", "没有"), (r"(?<!应)为(?=三|十|1)", "不为"), (r"是(?=1)", "不是"), (r"提供", "不提供"), (r"会在", "不会在"), (r"(?=开放|发放|更换|承担|审核|关门|提交申请)", "不")),
}  # fmt: skip

SWAPPED = re.compile(
    r"\d+|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty)\b|[二三四五六七八九十百]+"
)

ENGLISH = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "twelve": "12",
    "fifteen": "15",
    "twenty": "20",
    "thirty": "30",
}

UNITS = {
    "en": (
        r"(?<=[\d.a-z][ -])(day|hour|week|month|year|minute|pound|pence|cent|kilometre|mile|metre|kg|km|GB|MB|ml)(?=s?\b)|(?<=[\d.a-z][ -])euro\b|(?<=\d )%",
        (
            "hour day month week minute",
            "euro dollar pound yen cent",
            "mile kilometre metre",
            "kg gram",
            "GB MB",
            "% degree",
        ),
    ),
    "ja": (
        r"(?<=[\d一二三四五六七八九十百千万])(?:日間|時間|日(?!本)|週間|か月|年(?!度)|分(?!の)|円|人|名|キロ|メートル|回|％|%|度)",
        ("時間 日間 週間 か月 年間 分", "円 ドル ユーロ 元", "キロ メートル マイル", "人 回 台", "％ 度"),
    ),
    "zh": (
        r"(?<=[\d一二三四五六七八九十百千万两])(?:天|小时|分钟|个月|年|元|周|倍|名)",
        ("天 小时 分钟 个月 年 周", "元 美元 日元 欧元", "倍 名 台"),
    ),
}
"""The units of a language that stand behind a number, and those that are put in their place."""

NAMES = {"en": ("Ann Smith", "Bob Smith", "Keiko Mori", "Leith", "Galway", "Tokyo"), "ja": ("田中", "鈴木", "佐藤さん", "アルバ", "高橋"), "zh": ("王芳", "李伟", "张敏", "刘洋")}  # fmt: skip
SUBJECT = {
    "en": r"^[A-Z][^,;:()]{2,60}? (?=(?:may|must|can|will|should|has|approves|pays|needs|takes|brings|is|are|have) )",
    "ja": r"^[^、。「」]{1,14}?(?=[はが](?!、))",
    "zh": r"^(?:员工|实习生|访客|新员工|公司|每个部门|合同|食堂|班车|客户资料|图书馆|宿舍)(?!可以提前)",
}
"""The subject of a sentence, in whose place names are put."""


@dataclass(frozen=True)
class ClaimCase:
    """A claim with a sentence as its quotation: whether it is right, and what was changed."""

    language: str
    kind: str
    claim: str
    quotation: str

    @property
    def is_right(self) -> bool:
        return self.kind.startswith("right")


def sentences() -> Iterator[tuple[str, str]]:
    """Yield the sentences of the handbook and of a Chinese one, with their languages."""
    for language in ("en", "ja"):
        for path in sorted((HANDBOOK / language).rglob("*.md")):
            for line in path.read_text("utf-8").splitlines():
                if line and line[0] not in "#|-0123456789":
                    yield from (
                        (language, each.strip())
                        for each in SENTENCE_END.split(EMPHASIS.sub("", line))
                        if len(each) > 11
                    )
    yield from (("zh", each.strip()) for each in CHINESE.replace("\n", "|").split("|"))


def claim_cases(seed: int = 0) -> Iterator[ClaimCase]:
    """Yield the claims about all sentences."""
    random = Random(seed)
    known = list(sentences())
    for (language, sentence), (_, following) in zip(known, (*known[1:], known[0]), strict=True):
        yield ClaimCase(language, "right", sentence, sentence)
        yield ClaimCase(language, "right, longer quotation", sentence, f"{sentence} {following}")
        contracted = re.sub(r"\b(do|does|is|are|must) not\b", r"\1n't", sentence)
        if contracted != sentence:
            yield ClaimCase(language, "right, contracted", contracted, sentence)
        spelled = SWAPPED.sub(lambda found: ENGLISH.get(found[0], found[0]), sentence)
        if spelled != sentence:
            yield ClaimCase(language, "right, digits", spelled, sentence)
        clause, comma, _ = sentence.partition("; " if language == "en" else "、" if language == "ja" else "，")
        if comma and len(clause) > 24:
            yield ClaimCase(language, "right, clause", clause + ("." if language == "en" else "。"), sentence)
        for found in SWAPPED.finditer(sentence):
            yield ClaimCase(
                language,
                "number",
                sentence[: found.start()] + _other(found[0], random) + sentence[found.end() :],
                sentence,
            )
        for pattern, other in TOGGLES[language]:
            changed = re.sub(pattern, other, sentence, count=1)
            if changed != sentence:
                yield ClaimCase(language, "negation", changed, sentence)
                break
        for found in re.finditer(UNITS[language][0], sentence):
            other = _other_unit(found[0], language, random)
            if other and _counted(sentence, found.start()):
                changed = sentence[: found.start()] + other + sentence[found.end() :]
                yield ClaimCase(language, "unit", changed, sentence)
        name, other_name = random.sample(NAMES[language], 2)
        put = name + (" " if language == "en" else "")
        about, number = re.subn(SUBJECT[language], put, sentence, count=1)
        if number:
            yield ClaimCase(language, "right, name", about, f"{about} {following}")
            yield ClaimCase(language, "name", other_name + about[len(name) :], about)


def _counted(sentence: str, at: int) -> bool:
    """Whether a number stands right before a unit."""
    return bool(re.search(rf"(?:\d|\b(?:{'|'.join(ENGLISH)})|[一二三四五六七八九十百千万两])[ -]?\Z", sentence[:at]))


def _other_unit(unit: str, language: str, random: Random) -> str:
    """Return another unit of the same kind."""
    kin = next((words.split() for words in UNITS[language][1] if unit in words.split()), [])
    return random.choice([each for each in kin if each != unit] or [""])


def measure() -> dict[str, tuple[int, int]]:
    """Return for each kind of wrong claims, and for `right` ones, how many are refused, and how many there are."""
    counts = Counter(
        ("right" if case.is_right else case.kind, supports(case.claim, case.quotation)) for case in claim_cases()
    )
    return {kind: (counts[kind, False], counts[kind, False] + counts[kind, True]) for kind, _ in counts}


def figures() -> str:
    """Return the measured shares, as the documents have them."""
    shares = {kind: f"{refused / total:.1%} of {total:,}" for kind, (refused, total) in measure().items()}
    return (
        f"Of claims made from the sentences of the handbook (English, Japanese, Chinese), {shares['number']} with another number are\n"
        f"refused, {shares['unit']} with another unit or currency, {shares['negation']} with an added or missing negation, {shares['name']}\n"
        f"with another name, and {shares['right']} right ones (`python -m tests.flows.ask.claims`)."
    )


def _other(number: str, random: Random) -> str:
    if number.isdigit():
        return str(int(number) + random.choice((1, 2, 5, 10)))
    if number in ENGLISH:
        return random.choice([word for word in ENGLISH if word != number])
    return random.choice([each for each in ("二", "三", "五", "七", "八", "十二", "四十") if each != number])


if __name__ == "__main__":
    print(figures())  # noqa: T201
