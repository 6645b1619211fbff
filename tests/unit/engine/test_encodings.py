"""What text files are written in, and what is said of bytes that are not."""

from __future__ import annotations

import pytest

from anonspark.engine.encodings import codec_of, encoding_of_mark, likely_encodings
from anonspark.engine.reading_errors import undecodable

TEXTS = {
    "cp1252": "age,name,town\n31,Jürgen Weiß,Köln\n44,Günther Groß,Gößl\n28,Zoë Müller,Fürth\n",
    "cp1251": "age,town\n31,Москва\n44,Тула\n28,Нижний Новгород\n52,Екатеринбург\n",
    "cp932": "age,town\n31,東京都渋谷区\n44,大阪市北区\n28,さいたま市大宮区\n",
    "cp1250": "age,name\n31,Wałęsa Zbigniew\n44,Błażej Śliwiński\n28,Grażyna Żółć\n",
    "cp949": "age,town\n31,서울특별시\n44,부산광역시\n28,대구광역시\n",
}


@pytest.mark.parametrize("codec", TEXTS)
def test_likely_encodings_read_what_was_written(codec: str) -> None:
    content = TEXTS[codec].encode(codec)
    likely = likely_encodings(content)
    assert 1 <= len(likely) <= 3
    readings = [content.decode(codec_of(one) or "", "replace") for one in likely]
    assert TEXTS[codec] in readings


def test_two_short_words_are_enough() -> None:
    content = "age,town\n31,Ли\n44,Юж\n".encode("cp1251")
    assert likely_encodings(content)[0] == "windows-1251"


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("windows-1251", "cp1251"),
        ("Shift_JIS", "cp932"),
        ("EUC-KR", "cp949"),
        ("ISO-8859-1", "iso8859-1"),
        ("macintosh", "mac-roman"),
        ("UTF-16LE", "utf-16-le"),
        ("base64", None),
        ("klingon", None),
        ("", None),
    ],
)
def test_encodings_have_the_names_that_others_use(name: str, codec: str | None) -> None:
    assert codec_of(name) == codec


def test_utf_16_is_known_by_its_mark_or_by_its_zeros() -> None:
    text = "имя,число\nЮлий Бубнив,31\n"
    assert encoding_of_mark(text.encode("utf-16")) == "UTF-16"
    assert encoding_of_mark(text.encode("utf-8-sig")) == "UTF-8"
    assert likely_encodings(text.encode("utf-16-le")) == ["UTF-16LE"]
    assert likely_encodings(text.encode("utf-16-be")) == ["UTF-16BE"]


def test_bytes_that_are_no_text_are_refused_with_a_remedy_and_no_value() -> None:
    content = TEXTS["cp1251"].encode("cp1251")
    message = str(undecodable("input.path: a.csv", "UTF-8", 2, content))
    assert message.startswith(
        "input.path: a.csv: line 2 is not written in UTF-8 (likely windows-1251"
    )
    assert "input.options.encoding: windows-1251" in message
    assert "Москва" not in message
    in_command = str(undecodable("DATA: t: t/a.csv", "US-ASCII", None, content))
    assert "DATA: t: t/a.csv: its lines are not written in US-ASCII" in in_command
    assert "--option encoding=windows-1251" in in_command
