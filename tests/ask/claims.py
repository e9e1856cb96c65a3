"""Claims about the sentences of the handbook: right ones in other spellings, and wrong ones with a number or a negation changed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from taiwa.apps.catalog import HANDBOOK
from taiwa.ask.extractive import EMPHASIS, SENTENCE

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
                        (language, each.strip()) for each in SENTENCE.split(EMPHASIS.sub("", line)) if len(each) > 11
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


def _other(number: str, random: Random) -> str:
    if number.isdigit():
        return str(int(number) + random.choice((1, 2, 5, 10)))
    if number in ENGLISH:
        return random.choice([word for word in ENGLISH if word != number])
    return random.choice([each for each in ("二", "三", "五", "七", "八", "十二", "四十") if each != number])
