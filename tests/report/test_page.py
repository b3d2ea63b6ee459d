"""reports/index.html: whole, self-contained, and in agreement with the claims and tables it is made from."""

import base64
import io
import itertools
import json
import re
import shutil
from pathlib import Path
from posixpath import normpath

import pandas as pd
import pytest
from PIL import Image
from pydantic import create_model

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.report import page, published, tables, verdicts
from attnrate.report.claims import ledger
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from tests import browser, pipeline
from tests.conftest import ROOT
from tests.ops.test_readme import committed
from tests.report.common import CRITERIA
from tests.report.made import publish, rows
from tests.report.reader import Reader, plain

SECTIONS = page.content()["section"]
ITEMS = [page.content()["picture"], page.content()["scale"], *(i for s in SECTIONS for i in s["item"])]
SETTINGS = check(Params, params.read(ROOT / "params.yaml"), "params.yaml")
TABLE = pd.DataFrame({"": ["Original", "Altered"], "RNN": ["1.02e-07 [1–2; n=3] (paper 1.02e-07)", "x | <y>"]})


def source(item: dict) -> str:
    """The file that an item of page.toml shows."""
    if "figure" in item:
        return f"reports/figures/{item['figure']}.png"
    return f"reports/tables/{item['table']}.md" if "table" in item else f"reports/results/{item['csv']}"


def tree(root: Path) -> Path:
    """Files of every kind that page.toml names, small and made up."""
    for item in ITEMS:
        path = root / source(item)
        path.parent.mkdir(parents=True, exist_ok=True)
        if "figure" in item:
            Image.linear_gradient("L").resize((64, 48)).convert("RGBA").save(path)
        elif "table" in item:
            path.write_text(tables.markdown(TABLE, "Caption, 3 seeds."), encoding="utf-8")
        else:
            kept = item.get("keep", {})
            line = {c: [kept[c][0] if c in kept else "0.00123456"] for c in item["columns"]}
            pd.DataFrame(line).to_csv(path, index=False)
    (root / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "readings.md", root / "docs")
    return root


def at_night() -> dict:
    """A claim that is open on the laptop and was decided by a larger profile."""
    row = next(r for r in rows() if r["verdict"] == "undecided" and r["effect"] is not None and not r["ours"])
    return row | {"verdict": "reproduced", "needs": "", "measured": "7 at night", "replicates": 9}


def made(root: Path) -> str:
    tree(root)
    publish(root / "reports", [at_night()])
    return page.render(rows(), SETTINGS, root)


@pytest.fixture(scope="module")
def html(tmp_path_factory) -> str:
    return made(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def read(html) -> Reader:
    return Reader(html)


def agree(read: Reader, judged: list[dict]) -> None:
    """Each claim is in the list at the top, in order, numbers first, and has a card with all that is known of it."""
    links = [a for a in read.all("a") if a.attrs["href"].startswith("#claim-")]
    inside = (t for t in read.all("li") if any(t.start <= a.start and a.end <= t.end for a in links))
    listed = [read.text(t) for t in inside]
    assert [a.attrs["href"] for a in links] == [f"#claim-{r['id']}" for r in judged]
    for line, r in zip(listed, judged, strict=True):
        numbers, verdict, claim = line.partition(f"{verdicts.SIGNS[r['verdict']]} {r['verdict']}")
        assert verdict and numbers.startswith(plain(r["measured"] or "no number")) and plain(r["paper"]) in numbers
        assert claim.strip().startswith(plain(r["claim"])) and plain(r["needs"]) in claim
        (card,) = read.all("article", id=f"claim-{r['id']}")
        wanted = [r["verdict"], r["claim"], r["ref"], r["criterion"], r["why"], r["data"], r["command"]]
        wanted += [r["measured"], r["paper"], r["needs"], ledger.gate(r), *page.facts(r).values()]
        assert [w for w in wanted if plain(w) not in read.text(card)] == []
    assert plain(ledger.headline(judged)) in read.text()


def test_every_claim_is_there_with_its_verdict_and_numbers(read):
    top = at_night() | {"profile": "desk"}
    agree(read, [top if r["id"] == top["id"] else r for r in rows()])


def test_a_column_for_each_profile_says_where_it_comes_from_and_why_verdicts_differ(read):
    name, text = at_night()["id"], read.text()
    assert [t for t in read.all("tr") if read.text(t) == "claimlaptopdeskpaper"]
    lines = [[read.text(t) for t in read.all("td") if r.start <= t.start and t.end <= r.end] for r in read.all("tr")]
    (line,) = (cells for cells in lines if cells and cells[0] == plain(name))
    assert "undecided" in line[1] and "reproduced" in line[2] and line[3] == ""
    assert "laptop undecided, desk reproduced: replicates" in text
    assert "Figure 1: 1.5 hours, 2.5 GB on a processor" in text
    assert "not run yet: dvc exp run $(python -m attnrate.ops.profile paper), then attnrate publish all" in text


def test_with_nothing_published_there_is_no_picture_of_scales(tmp_path):
    read = Reader(page.render(rows(), SETTINGS, tree(tmp_path)))
    assert len(read.all("img")) == sum("figure" in i for i in ITEMS) - 1
    agree(read, rows())


def row(**changed) -> dict:
    part = {"name": "roll", "effect": 0.0, "interval": [-0.1, 0.1], "level": 0.95, "test": "below", "margin": 0.5}
    part |= {"replicates": 5, "dead": 0, "outcome": "holds"}
    top = {k: part[k] for k in ("effect", "interval", "level", "margin", "replicates", "test")}
    found = {"measured": "1 → 2", "paper": "1 → 3", "unit": "", "spread": "", "exact": False, "converged": "not run"}
    return found | {"needs": "", "parts": [part]} | top | changed


def test_a_card_has_effect_interval_level_margin_replicates_and_the_gate():
    known = page.facts(row())
    assert known == {
        "Measured": "1 → 2",
        "The paper's": "1 → 3",
        "Effect": "0 [-0.1, 0.1] (roll)",
        "Interval": "95 %",
        "Margin": "below 0.5",
        "Replicates": "5",
        "Budget": "gate not run",
    }
    ratio = page.facts(row(unit="ratio", converged=False, needs="more steps"))
    assert (ratio["Effect"], ratio["Margin"]) == ("1 [0.905, 1.11] (roll)", "below 1.65")
    assert (ratio["Budget"], ratio["Needs"]) == ("not converged", "more steps")


def test_a_card_of_several_parts_has_the_one_that_decides_and_then_all():
    other = row()["parts"][0] | {"name": "exchange", "effect": 0.4, "interval": [0.3, 0.6], "outcome": "undecided"}
    exact = {"name": "structurally", "outcome": "fails"}
    found = page.facts(row(effect=0.4, interval=[0.3, 0.6], parts=[*row()["parts"], other, exact]))
    assert found["Effect"] == "0.4 [0.3, 0.6] (exchange)"
    assert found["Parts"].splitlines() == [
        "roll: 0 [-0.1, 0.1], to be below 0.5: holds",
        "exchange: 0.4 [0.3, 0.6], to be below 0.5: undecided",
        "structurally: fails",
    ]


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"effect": 0.2, "interval": [0.1, None], "outcome": "undecided", "dead": 1}, "0.2 [0.1, ∞]"),
        ({"effect": None, "interval": [0.7, None], "outcome": "fails", "dead": 3}, "∞ [0.7, ∞]"),
        ({"effect": None, "interval": [None, None], "outcome": "fails", "dead": 5}, "∞ [∞, ∞]"),
        ({"effect": None, "interval": [None, None], "outcome": "holds", "dead": 5}, "-∞ [-∞, -∞]"),
        ({"effect": None, "interval": [None, None], "outcome": "undecided", "dead": 4}, "? [-∞, ∞]"),
        ({"effect": None, "interval": [None, 0.2], "outcome": "undecided", "dead": 4}, "-∞ [-∞, 0.2]"),
        ({"effect": 0.2, "interval": [None, None], "outcome": "undecided", "replicates": 1}, "0.2 (n = 1)"),
    ],
)
def test_infinite_effects_of_runs_that_died(changed, wanted):
    assert verdicts.effect(row()["parts"][0] | changed, "") == wanted


def test_margins_in_words():
    part = row()["parts"][0] | {"margin": 0.5}
    assert [verdicts.margin(part | {"test": t}, "") for t in ("above", "equal")] == ["above 0.5", "within ±0.5"]
    assert verdicts.margin(part | {"test": "equal"}, "ratio") == "within a factor of 1.65"


def test_it_needs_neither_network_nor_script(read):
    assert not read.all("script", "iframe", "object", "base")
    for tag in read.tags:
        for name in ("src", "srcset", "href", "data", "action", "style"):
            value = tag.attrs.get(name, "")
            assert "//" not in value or tag.name == "a" or value.startswith("data:"), value
    assert all(t.attrs["src"].startswith("data:image/webp;base64,") for t in read.all("img"))
    assert all(t.attrs["href"] == "data:," for t in read.all("link"))
    assert {t.attrs["href"] for t in read.all("a") if "//" in t.attrs["href"]} == {"https://arxiv.org/abs/2305.18475"}
    style = "".join("".join(read.words[t.start : t.end]) for t in read.all("style"))
    assert style and "url(" not in style and "@import" not in style and "prefers-color-scheme: dark" in style


def test_figures_have_words_and_a_fixed_shape(read):
    images = read.all("img")
    assert [t.attrs["alt"] for t in images] == [i["alt"] for i in ITEMS if "figure" in i]
    assert all(len(t.attrs["alt"]) > 60 and t.attrs["width"] == "64" and t.attrs["height"] == "48" for t in images)


def test_a_figure_keeps_every_pixel(tmp_path):
    picture = Image.effect_noise((40, 30), 90).convert("RGB")
    picture.save(tmp_path / "f.png")
    data = page.image(tmp_path / "f.png")["src"].partition(",")[2]
    with Image.open(io.BytesIO(base64.b64decode(data))) as shown:
        assert shown.convert("RGB").tobytes() == picture.tobytes()


def test_headings_go_down_one_level_at_a_time_and_ids_are_unique(read):
    levels = [int(t.name[1]) for t in read.tags if re.fullmatch("h[1-6]", t.name)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    ids = [t.attrs["id"] for t in read.tags if "id" in t.attrs]
    assert len(ids) == len(set(ids))
    assert {t.attrs["href"][1:] for t in read.all("a") if t.attrs["href"].startswith("#")} <= set(ids)


def flat(group: dict, prefix: str = "") -> dict:
    """params.yaml by its dotted keys."""
    found = {}
    for key, value in group.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def test_tables_and_readings_are_shown_as_they_are(read):
    text = read.text()
    assert text.count("1.02e-07 [1–2; n=3] (paper 1.02e-07)") == sum("table" in i for i in ITEMS)
    assert "x | <y>" in text and "1.23e-03" in text and "0.00123456" not in text
    readings = (ROOT / "docs" / "readings.md").read_text(encoding="utf-8").splitlines()
    first = [plain(line.split(" | ")[0][2:]) for line in readings if line.startswith("| (")]
    assert first and [cell for cell in first if cell not in text] == []


def test_every_setting_is_shown_by_its_key_with_its_value_and_meaning(read):
    known = flat(params.read(ROOT / "params.yaml"))
    leaves = {leaf["key"]: leaf for leaf in page.leaves(SETTINGS)}
    assert list(leaves) == list(known), "the schema and params.yaml have other keys, or another order"
    assert [key for key, leaf in leaves.items() if not leaf["about"]] == []
    shown = [read.text(row) for row in read.all("tr")]
    missing = [k for k, leaf in leaves.items() if plain(f"{k}{leaf['value']}{leaf['about']}") not in shown]
    assert missing == ["profile", "launch", "live"], "the first is at the top of the page, the others change no result"
    Path("said.yaml").write_text("".join(f"{k}: [{leaf['value']}]\n" for k, leaf in leaves.items()), encoding="utf-8")
    said = params.read("said.yaml")
    assert said == {k: v if isinstance(v, list) else [v] for k, v in known.items()}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: s["id"])
def test_a_section_shows_what_it_names_and_its_seeds(section):
    keys = [leaf["key"] for leaf in page.settings(SETTINGS, section["settings"])]
    for name in section["settings"]:
        assert any(pipeline.covers(name.replace(".", "/"), key.replace(".", "/")) for key in keys), name
    assert "threads" in keys and any(key.endswith("seeds") for key in keys)
    assert len(keys) == len(set(keys))


def test_a_name_is_a_parameter_or_a_whole_group():
    keys = [leaf["key"] for leaf in page.settings(SETTINGS, ["mh", "vit.main"])]
    assert keys == ["mh", *(f"vit.main.{key}" for key in type(SETTINGS.vit.main).model_fields)]
    alike = create_model("Alike", main=(int, 1), main_too=(int, 2))()
    assert [leaf["key"] for leaf in page.settings(alike, ["main"])] == ["main"]


def test_same_files_same_bytes_and_few_of_them(html, tmp_path):
    assert made(tmp_path) == html
    assert len(html.encode()) < 200_000  # without the figures


def test_a_claim_outside_every_section_still_has_a_card(tmp_path):
    extra = {**rows()[0], "id": "new", "claim": "A new claim."}
    agree(Reader(page.render([*rows(), extra], SETTINGS, tree(tmp_path))), [*rows(), extra])


def test_a_section_with_an_unknown_claim_is_told(tmp_path):
    with pytest.raises(UserError, match=r"page\.toml: section rates names unknown claims: equivariance"):
        page.render([r for r in rows() if r["id"] != "equivariance"], SETTINGS, tree(tmp_path))


def test_every_claim_belongs_to_one_section_in_the_papers_order(read):
    named = [name for s in SECTIONS for name in s["claims"]]
    assert sorted(named) == sorted(CRITERIA)
    for s in SECTIONS:
        assert s["claims"] == [name for name in CRITERIA if name in s["claims"]]
    assert not read.all("section", **{"aria-labelledby": "more"})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("m_h^-(2α-1).", "m<sub>h</sub><sup>-(2α-1)</sup>."),
        ("m_FF^-β", "m<sub>FF</sub><sup>-β</sup>"),
        ("e^-s, m^-1.", "e<sup>-s</sup>, m<sup>-1</sup>."),
        ("Σ σ_i² < ψ_{q,t}(x_t)", "Σ σ<sub>i</sub>² &lt; ψ<sub>q,t</sub>(x<sub>t</sub>)"),
        ("rates_bounds.csv < 1", "rates_bounds.csv &lt; 1"),
    ],
)
def test_indices_and_exponents(text, wanted):
    assert str(page.maths(text)) == wanted


def test_numbers_of_a_csv_are_shortened_and_rows_come_in_the_order_asked_for(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\nx,0.000123456,1\ny,-1.60221,16\nz,word,3\n")
    found = page.csv(tmp_path / "t.csv", {"a": "A", "b": "B", "c": "C"}, {"a": ["y", "x"]})
    assert found == {"head": ["A", "B", "C"], "rows": [["y", "-1.6", "16"], ["x", "1.23e-04", "1"]]}


def test_the_stage_depends_on_what_the_page_reads_and_commands_make_it():
    stages = {s.name.split("@")[0]: s for s in pipeline.stages(ROOT)}
    deps = stages["page"].data
    read = {*map(source, ITEMS), "reports/claims.json", "docs/readings.md", "params.yaml"}  # its settings
    read |= {"reports/published/state.json"}
    assert [file for file in read if not any(pipeline.covers(dep, file) for dep in deps)] == []
    assert [dep for dep in deps if not any(pipeline.covers(dep, file) for file in read)] == []
    for item in ITEMS:
        outs = stages[item["command"].removeprefix("dvc repro ")].outs
        assert any(pipeline.covers(out, source(item)) for out in outs), item["command"]
    outs = [out for stage in stages.values() for out in stage.outs]
    linked = [normpath(f"reports/results/{name}") for s in SECTIONS for name in s["data"]]
    assert [file for file in linked if not any(pipeline.covers(out, file) for out in outs)] == []


def test_the_committed_page_says_what_the_committed_claims_say():
    text = committed("reports/index.html")
    shown = published.columns(json.loads(committed("reports/claims.json")), ROOT / "reports/published")
    agree(Reader(text), published.headline(shown))
    assert len(text.encode()) < 3_000_000


def real_page(folder: Path) -> Path:
    path = ROOT / "reports" / "index.html"
    if not path.exists():
        pytest.skip("reports/index.html has not been made: `dvc repro page`")
    return Path(shutil.copy(path, folder))  # alone in a folder: it must need nothing beside it


def made_page(folder: Path) -> Path:
    html = made(folder)
    (folder / "reports" / "index.html").write_text(html, encoding="utf-8")
    return folder / "reports" / "index.html"


@pytest.mark.slow
@pytest.mark.skipif(browser.installed() is None, reason="no Chromium on this machine (apt-get install chromium)")
@pytest.mark.parametrize("which", [made_page, real_page])
def test_a_browser_shows_it_without_complaint(which, tmp_path):
    file = which(tmp_path)
    with browser.Browser(tmp_path / "profile") as b:
        b.view(1200)
        b.open(file)
        widths = b.value("Promise.all([...document.images].map(i => i.decode().then(() => i.naturalWidth)))")
        # without anything published there is no picture of scales
        shown = len(Reader(file.read_text(encoding="utf-8")).all("img"))
        assert len(widths) == shown >= sum("figure" in i for i in ITEMS) - 1 and min(widths) > 0
        for width, dark in ((1200, False), (400, False), (400, True)):
            b.view(width, dark)
            assert b.value("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        ink, ground = b.value("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
        assert sum(map(int, re.findall(r"\d+", ink)[:3])) > 600 > 150 > sum(map(int, re.findall(r"\d+", ground)[:3]))
        assert b.complaints == []
        assert [url for url in b.requests if not url.startswith("data:")] == [file.resolve().as_uri()]
