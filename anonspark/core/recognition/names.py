"""Recognize the meaning of a column by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Suggested = Literal["identifier", "quasi_identifier", "sensitive"]
Unit = Literal["person", "household"]


@dataclass(frozen=True)
class Meaning:
    """The meaning of a column's name.

    ``kind`` is what its values are, as users call it. ``role`` is the usual role of such columns.
    ``word`` is the part of the name that shows it. ``rank`` is its position among all meanings:
    what is most often known of people comes first.
    """

    kind: str
    role: Suggested
    word: str
    rank: int


# Words of English, German, French, Spanish, Italian and Turkish. Those of up to three letters have
# to stand for themselves, others may be the beginning of a longer word. The first that fits counts.
_WORDS: tuple[tuple[str, Suggested, str], ...] = (
    ("e-mail address", "identifier", "email mail eposta"),
    ("phone number", "identifier", "phone telephone telefon tel mobile cellphone fax handy"),
    ("IBAN", "identifier", "iban"),
    ("payment card", "identifier", "creditcard cardnumber cardno pan"),
    ("identity number", "identifier", "ssn nhs nino passport passeport pasaporte ausweis socialsec "
     "sozialvers steuernummer taxid dni nif nie pesel bsn cpf tckn kimlik aadhaar mrn insuranceno "
     "versichertennummer licenseno licence licenseplate numberplate kennzeichen"),
    ("street address", "identifier", "address adress adresse street strasse straße direccion "
     "indirizzo calle housenumber hausnummer"),
    ("network address", "identifier", "ip ipaddress macaddress imei deviceid"),
    ("name of a person", "identifier", "fullname firstname lastname surname forename givenname "
     "familyname middlename nachname vorname familienname prenom nombre apellido cognome soyad "
     "username nickname"),
    ("coordinates", "identifier", "latitude longitude lat lon lng coordinates gps"),
    ("date of birth", "quasi_identifier", "birth dob born geburt naissance nacimiento nascita "
     "dogum"),
    ("age", "quasi_identifier", "age alter edad eta yas agegroup agerange ageyears"),
    ("sex", "quasi_identifier", "sex gender geschlecht sexe sexo sesso cinsiyet female male"),
    ("postal code", "quasi_identifier", "zip postal postcode postleit plz codigopostal "
     "postakodu"),
    ("diagnosis", "sensitive", "diag diagnos disease illness icd condition symptom krankheit "
     "maladie enfermedad hastalik comorbid injury verletzung cause treatment therap medication "
     "drug prescription procedure hiv cancer tumor tumour outcome mortality labresult"),
    ("income", "sensitive", "income salar wage gehalt einkommen lohn revenu sueldo ingreso maas "
     "gelir debt loan balance creditscore rating"),
    ("race", "quasi_identifier", "race ethnic hispanic ethnie raza rasse"),
    ("city", "quasi_identifier", "city town village municipal gemeinde stadt wohnort ville commune "
     "ciudad comune sehir ort place residence birthplace geburtsort"),
    ("region", "quasi_identifier", "county state region province provinz district landkreis canton "
     "kanton bundesland departement il ilce"),
    ("country", "quasi_identifier", "country nation citizen nativecountry pays pais paese "
     "ulke staat"),
    ("education", "quasi_identifier", "education degree school bildung schule abschluss diplome "
     "educacion egitim"),
    ("occupation", "quasi_identifier", "occupation job profession beruf metier ocupacion meslek "
     "position"),
    ("marital status", "quasi_identifier", "marital civilstatus familienstand married "
     "estadocivil medeni"),
    ("language", "quasi_identifier", "language sprache langue idioma lingua dil"),
    ("employer", "quasi_identifier", "employer workclass industry arbeitgeber branche"),
    ("household", "quasi_identifier", "relationship household children haushalt kinder"),
    ("death", "quasi_identifier", "death died deceased todes sterbe"),
    ("religion", "sensitive", "religio faith konfession"),
    ("sexual orientation", "sensitive", "orientation sexuality"),
    ("political opinion", "sensitive", "politic party vote partei"),
    ("criminal record", "sensitive", "crime criminal offence offense convict arrest"),
    ("free text", "identifier", "comment remark note notes freetext bemerkung kommentar message"),
    ("target", "sensitive", "class label target readmit churn default fraud score grade"),
)  # fmt: skip

_PARTS = re.compile(r"[A-Z]?[a-zß-öø-ÿ]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_KEY_WORDS = {"id", "ids", "uid", "uuid", "guid", "key", "nbr", "nr", "no", "num", "number",
              "code", "identifier", "kennung", "nummer", "numero", "hash", "token", "account",
              "konto", "idnum"}  # fmt: skip
# Without another word they do not say what is numbered.
_BARE_NUMBERS = {"key", "nbr", "nr", "no", "num", "number", "code", "nummer", "numero"}
# A code usually numbers things. The other words mean people, or numbers of people alone.
_WORDS_OF_PEOPLE = (_KEY_WORDS - {"code"}) | {
    "ident", "ssn", "mrn", "pid", "pseudonym", "person", "patient", "customer", "user",
}  # fmt: skip
_NAMES = {"name", "names", "nom", "isim", "nome"}
# Of people and households; "p" and "h" are too short to stand before anything but a number.
_PEOPLE = (
    r"person(?:s|en)?|pers|patient(?:s|en)?|pat|subject|subj|respondent|resp|participant|member|"
    r"customer|client|kunden?|case|proband(?:en)?|vp|user|student|pupil|employee|worker|child|mother|"
    r"individual|indiv|insured|beneficiary|taxpayer|citizen|resident|donor|voter|driver|usubj"
)
_HOUSEHOLDS = (
    r"household|haushalts?|hous?hld|hh|family|fam|familien?|famille|hogar|menage|m\u00e9nage|foyer|"
    r"dwelling|hushall|hush\u00e5ll|huishouden|nucleo|n\u00facleo|famiglia|hane|home|wohnung|apartment"
)
# An amount or a score of a year, as expp92.
_OF_A_YEAR = re.compile(r"(?i)[a-z]{3,}_?(?:19|20)?[6-9][0-9]")
_UNIT = re.compile(
    rf"(?:(?P<household>(?:{_HOUSEHOLDS})|h(?=id|nr|num))|{_PEOPLE}|p(?=id|nr|num))"
    r"(?:id|ids|ident|identifier|uid|uuid|guid|nr|no|num|nbr|number|nummer|key|code|hash|idnum|"
    rf"pseudonym|token)|id(?:(?P<of_household>{_HOUSEHOLDS})|{_PEOPLE})"
)
_HOUSEHOLD = re.compile(_HOUSEHOLDS)
_PERSON_ALONE = {"person", "patient", "customer", "subject", "respondent", "proband", "pseudonym",
                 "individual", "user", "mrn", "ssn", "case", "client", "member", "participant",
                 "pidp"}  # fmt: skip
_BARE_KEYS = {"id", "ident", "identifier", "uid", "uuid", "guid", "idnum", "kennung"}
# Units of a sampling weight, or which of several it is: hhweight, finalwgt, WTINT2YR, pspwght.
_OF_WEIGHT = (
    "h|hh|hhld|hou?sehold|p|per|pers|person|ind|individual|pop|population|samp|sampl|sample|"
    "sampling|survey|svy|final|finl|fin|fnl|tot|stu|stud|student|fstu|design|d|an|analysis|psp|"
    "cal|calibrated|norm|normali[sz]ed|raked|rep|replicate|asec|earn|llcp|cross|long"
)
_SAMPLING_WEIGHT = re.compile(
    rf"w?(?:{_OF_WEIGHT})+(?:weight|wght|wgt|wt)s?p?|(?:weight|wght|wgt|wt)s?"
    rf"(?:{_OF_WEIGHT}|int|mec|saf|drd|yr|ss|all|ps|nr)+|fexp?|hochrechnung\w*|[hp]*hrf|ponder\w*|"
    r"fac(?:tor)?(?:de)?exp\w*|exp\w*factor"
)
_BARE_WEIGHT = re.compile(r"w|(?:weight|wght|wgt|wt)s?|gewicht|poids|peso|pond")
# Next to them a weight is that of a body.
_BODY = re.compile(
    r"height|bmi|waist|bp|systolic|diastolic|glucose|cholesterol|groesse|taille|pulse|body"
)
_KINDS_OF_UNITS = ("identity number", "e-mail address", "phone number", "IBAN",
                   "payment card", "network address")  # fmt: skip
# Words of days and years; beside that of a birth they say its date, and others say nothing.
_WHEN = re.compile(
    r"s?(?:dat\w*|day[st]?|years?|yr|y|months?|jahr|tag|monat|annee|année|jour|fecha|anio|año|anno|"
    r"tarihi?|yili?|dt|ymd)"
)
_OF = {"", "i", "of", "de", "di", "s", "d", "m", "my", "the", "person", "patient", "child"}
# A number of diagnoses is no diagnosis.
# Kinds whose numbers stand for names, so that a range would join unrelated values.
_NAMED_BY_NUMBERS = {"sex", "race", "marital status", "city", "region", "country", "language",
                     "occupation", "employer", "religion"}  # fmt: skip
_LAST_WORDS_OF_CODES = {"id", "code", "cd", "type", "typ", "category", "cat", "kind"}
MOST_NAMES = 50
"""Numbers of a wider range are not taken for names."""

_COUNTED = {"num", "number", "n", "count", "total", "time", "days", "sum", "avg", "mean"}
_LONGEST_EXACT = 3


def words_of(name: str) -> list[str]:
    """Split the name of a column into its words, in small letters.

    >>> words_of("birthDate_2")
    ['birth', 'date']
    """
    return [part.lower() for part in _PARTS.findall(name)]


def meaning_of(name: str) -> Meaning | None:
    """Return the kind and role of the values that the name of a column suggests, or None.

    The first kind of :data:`_WORDS` that matches wins. A number of things is none of these kinds.

    >>> meaning_of("zip_code").kind, meaning_of("num_emails")
    ('postal code', None)
    """
    words = words_of(name)
    if words and words[0] in _COUNTED:
        return None
    # Words are also looked up in pairs: capital-gain, birthDate.
    joined = ["".join(words[index : index + 2]) for index in range(len(words) - 1)]
    for rank, (kind, role, words_of_kind) in enumerate(_WORDS):
        for word in words_of_kind.split():
            if not any(_says(part, word) for part in (*words, *joined)):
                continue
            # The order, weight, place or country of a birth is no date of birth.
            rest = {part.replace(word, "", 1) for part in words}
            if kind != "date of birth" or rest <= _OF or any(map(_WHEN.fullmatch, rest)):
                return Meaning(kind, role, word, rank)
    if words and words[-1] in _NAMES and _is_of_person(words):
        return Meaning("name of a person", "identifier", words[-1], len(_WORDS))
    return None


def _says(part: str, word: str) -> bool:
    """Return whether a part of a name is a word or, if the word is long enough, begins with it.

    >>> _says("educationnum", "education"), _says("ages", "age")
    (True, False)
    """
    if part == word:
        return True
    # Coded columns of censuses begin with an i: isex, iage.
    if part.startswith("i") and part[1:] == word:
        return True
    if len(word) <= _LONGEST_EXACT:
        return False
    return part.startswith(word) or (part.startswith("i") and part[1:].startswith(word))


def _is_of_person(words: list[str]) -> bool:
    others = {"file", "host", "product", "item", "company", "column", "table", "class", "brand",
              "event", "type", "category", "group", "species", "model", "drug", "test"}  # fmt: skip
    return not others.intersection(words)


def is_key_name(name: str) -> bool:
    """Return whether a name shows that values number things: it ends with id, number, code or so.

    The code of a diagnosis, or of another sensitive attribute, is a value that people share.

    >>> is_key_name("admission_id"), is_key_name("diagnosis_code")
    (True, False)
    """
    words = words_of(name)
    if not words or words[-1] not in _KEY_WORDS or {*words} <= _BARE_NUMBERS:
        return False
    meaning = meaning_of(name)
    return words[-1] != "code" or meaning is None or meaning.role != "sensitive"


def may_number_people(name: str) -> bool:
    """Return whether a name allows that values number people: patient_nbr, SSN, household.

    >>> may_number_people("patient_nbr"), may_number_people("num_patients")
    (True, False)
    """
    words = words_of(name)
    # The number of rooms counts them.
    is_count = len(words) > 1 and words[0] in _COUNTED
    says_people = not _WORDS_OF_PEOPLE.isdisjoint(words)
    return not is_count and (says_people or _HOUSEHOLD.fullmatch("".join(words)) is not None)


def may_mean_people(name: str) -> bool:
    """Return whether a name shows nothing, or what only one person has.

    >>> may_mean_people("x17"), may_mean_people("ssn"), may_mean_people("age")
    (True, True, False)
    """
    meaning, words = meaning_of(name), words_of(name)
    if weight_of_name(name) is not None or (len(words) > 1 and words[0] in _COUNTED):
        return False
    if meaning is None:
        says_when = any(map(_WHEN.fullmatch, words)) or _OF_A_YEAR.fullmatch(name)
        return not says_when or is_key_name(name)
    return meaning.kind in _KINDS_OF_UNITS


def may_number_names(name: str) -> bool:
    """Return whether few whole numbers are surely codes of names: race, or admission_type_id.

    >>> may_number_names("admission_type_id"), may_number_names("age")
    (True, False)
    """
    meaning, words = meaning_of(name), words_of(name)
    if meaning is not None:
        return meaning.kind in _NAMED_BY_NUMBERS
    return len(words) > 1 and words[0] not in _COUNTED and words[-1] in _LAST_WORDS_OF_CODES


def weight_of_name(name: str) -> bool | None:
    """Return True if a name means a sampling weight, False if it may be another weight, else None.

    >>> weight_of_name("fnlwgt"), weight_of_name("weight"), weight_of_name("age")
    (True, False, None)
    """
    joined = "".join(words_of(name))
    if _SAMPLING_WEIGHT.fullmatch(joined):
        return True
    return False if _BARE_WEIGHT.fullmatch(joined) else None


def says_body(name: str) -> bool:
    """Return whether a column usually stands next to the weight of a body.

    >>> says_body("height"), says_body("income")
    (True, False)
    """
    meaning = meaning_of(name)
    return any(map(_BODY.fullmatch, words_of(name))) or (
        meaning is not None and meaning.kind == "diagnosis"
    )


def unit_of_name(name: str) -> Unit | None:
    """Return whom a name numbers, persons or households, or None if it does not show that.

    >>> unit_of_name("patient_nbr"), unit_of_name("household_id"), unit_of_name("id")
    ('person', 'household', None)
    """
    words = words_of(name)
    if words and words[0] in _COUNTED:
        return None
    joined = "".join(words)
    match = _UNIT.fullmatch(joined)
    if match is None:
        return "person" if joined in _PERSON_ALONE else None
    return "household" if match["household"] or match["of_household"] else "person"


def may_be_unit_name(name: str) -> bool:
    """Return whether a name is enough for the unit: patient_nbr, or id and household alone.

    >>> may_be_unit_name("id"), may_be_unit_name("rows_id")
    (True, False)
    """
    joined = "".join(words_of(name))
    bare = joined in _BARE_KEYS or _HOUSEHOLD.fullmatch(joined) is not None
    return bare or unit_of_name(name) is not None
