"""Files from strangers: escaped, refused or reported; never executed, never silently merged."""

from __future__ import annotations

import base64
import hashlib
import html
import html.parser
import json
import re
import time

import pytest

from leaderboard_records import GRID, checkpoint, evaluation, harness, save
from style_overlap.errors import UsageError
from style_overlap.leaderboard import board as boards
from style_overlap.leaderboard import page, site, strict, tables
from style_overlap.leaderboard.entries import assemble
from style_overlap.leaderboard.sources import gather
from style_overlap.results import write_json

SCRIPT = "<script>alert(1)</script>"
NAMES = (
    SCRIPT,
    '"><img src=x onerror=alert(1)>',
    "'onmouseover=alert(1) x='",
    "</style></title></script><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "| a | [b](javascript:alert(1)) `c`\n# d",
    '=HYPERLINK("http://evil.example")',
)


def make(*paths):
    return boards.board(assemble(gather(paths)))


class Parsed(html.parser.HTMLParser):
    """Tags and their attributes, as a browser would take them."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", NAMES)
def test_names_are_text_wherever_they_stand(tmp_path, name):
    record = evaluation(name)
    record["checkpoint"]["config"]["corpus"] = name
    record["tasks"]["style_overlap_k2_a0.0"]["styles"] = [name, "ASV"]
    record["tasks"]["style_overlap_k2_a1.0"]["styles"] = [name, "ASV"]
    limited = evaluation(name, seed=9)
    limited["checkpoint"]["degenerate"] = name
    foreign = harness(evaluation("x"))
    foreign["model_name"] = name
    write_json(tmp_path / "results_1.json", foreign)
    board = make(save(tmp_path, record, limited))
    assert (len(board["rows"]), len(board["unknown"]), len(board["left_out"])) == (1, 1, 1)
    tags = Parsed(page.as_html(board)).tags
    assert [tag for tag, _ in tags].count("script") == 1
    assert not {"img", "iframe", "object", "base", "form action"} & {tag for tag, _ in tags}
    for tag, attributes in tags:
        assert not [key for key in attributes if key.startswith("on")]
        if tag == "a":
            assert attributes["href"].startswith(("#", "leaderboard."))
    assert html.unescape(page.as_html(board)).count(" ".join(name.splitlines()[:1])) > 3
    markdown = tables.as_markdown(board)
    assert not re.search(r"(?<!\\)<script|(?<!\\)\]\(", markdown)
    assert len([line for line in markdown.splitlines() if line.startswith("| – |")]) == 1
    assert ",=HYPERLINK" not in tables.as_csv(board).replace('"', "")


def test_the_policy_of_the_page_allows_its_own_script_and_no_other(tmp_path):
    text = page.as_html(make(save(tmp_path, evaluation())))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    script = re.search(r"<script>(.*)</script>", text, re.DOTALL)[1]
    told = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{told}'" in policy.replace("&#39;", "'")


def test_invisible_characters_show(tmp_path):
    board = make(save(tmp_path, evaluation("org/\u202eevil\u200b\x00")))
    assert board["rows"][0]["encoder"] == "org/\ufffdevil\ufffd\ufffd"


def test_names_that_differ_only_in_what_is_invisible_do_not_share_a_row(tmp_path):
    board = make(save(tmp_path, evaluation("org/a"), evaluation("org/a\u200b", "1.0")))
    assert len(board["rows"]) == 2


@pytest.mark.case(23)
@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": -Infinity}', "-Infinity is no number"),
        (b'{"a": ' + b"9" * 10**6 + b"}", "a number of 1000000 digits"),
        (b'{"a": 0.' + b"9" * 10**6 + b"}", "a number of 1000002 digits"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "one key twice"),
        (b"\xff\xfe", "not valid JSON"),
        (b"", "not valid JSON"),
        (b'{"a"', "not valid JSON"),
    ],
)
def test_what_is_no_strict_json_is_refused_at_once(data, told):
    started = time.perf_counter()
    with pytest.raises(strict.Refused, match=told):
        strict.parse(data)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: r.update(schema=2), "schema"),
        (lambda r: r.update(schema=True), "schema"),
        (lambda r: r["tasks"]["style_overlap_k2_a0.0"].update(acc=1.5), "acc"),
        (lambda r: r["tasks"]["style_overlap_k2_a0.0"].update(acc="0.9"), "acc"),
        (lambda r: r["tasks"]["style_overlap_k2_a0.0"].update(acc=1e400), "valid JSON"),
        (lambda r: r["tasks"]["style_overlap_k2_a0.0"].update(acc_stderr=1e300), "acc_stderr"),
        (lambda r: r["tasks"]["style_overlap_k2_a0.0"].update(styles=["KJV", 3]), "styles"),
        (lambda r: r["checkpoint"]["config"].update(model=3), "model"),
        (lambda r: r["checkpoint"]["config"].update(model="x" * 5000), "model"),
        (lambda r: r["checkpoint"]["config"].update(seed=-1), "seed"),
        (lambda r: r["checkpoint"]["config"].update(alpha="2"), "alpha"),
        (lambda r: r["config"].update(k=2.5), "k"),
        (lambda r: r["model"].update(model_num_parameters=-5), "parameters"),
        (lambda r: r["tasks"]["style_overlap_k2_a0.0"]["credit"].update(x=[1e9, 1e9]), "credit"),
        (lambda r: r["tasks"]["style_overlap_k2_a0.0"]["credit"].update(x=[5, 1]), "credit"),
        (lambda r: r["tasks"]["style_overlap_k2_a0.0"]["credit"].update(x=[0.5, 0.5]), "credit"),
        (lambda r: r["tasks"]["style_overlap_k2_a0.0"]["credit"].update(x=[1]), "credit"),
    ],
)
def test_a_record_that_does_not_fit_is_left_out_named_and_explained(tmp_path, change, told):
    bad = evaluation("org/bad")
    change(bad)
    save(tmp_path, evaluation())
    path = tmp_path / "bad" / "evaluations" / "k2-0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(bad))
    board = make(tmp_path)
    assert [row["encoder"] for row in board["rows"]] == ["org/enc"]
    (one,) = board["left_out"]
    assert one["source"] == str(path)
    assert told in one["reason"]


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["results"].update({"style_overlap_k2_a0.0": {"acc,none": 7}}),
        lambda r: r["configs"]["style_overlap_k2_a0.0"]["dataset_kwargs"].update(alpha="nan"),
        lambda r: r["configs"]["style_overlap_k2_a0.0"]["dataset_kwargs"].update(k=10**30),
        lambda r: r["configs"]["style_overlap_k2_a0.0"]["metadata"].update(styles="KJV"),
        lambda r: r.update(configs=[]),
        lambda r: r["config"].update(model_num_parameters="many"),
        lambda r: r["config"].update(training={"config": {"model": {}}}),
    ],
)
def test_a_results_file_that_does_not_fit_is_left_out(tmp_path, change):
    bad = harness(evaluation("org/bad"))
    change(bad)
    write_json(tmp_path / "results_1.json", bad)
    board = make(save(tmp_path, evaluation()))
    assert [row["encoder"] for row in board["rows"]] == ["org/enc"]
    assert not board["unknown"]
    assert [one["source"] for one in board["left_out"]] == [str(tmp_path / "results_1.json")]


def test_any_json_value_in_place_of_any_part_is_left_out_or_read_and_never_a_crash(tmp_path):
    """Every part of a record in turn becomes something else."""

    def places(value, path=()):
        yield path
        if isinstance(value, dict):
            for key in list(value)[:6]:
                yield from places(value[key], (*path, key))

    good = evaluation("org/odd", accuracies={"0.0": 0.9}, contents=10)
    number = 0
    for path in places(good):
        if not path:
            continue
        for odd in (None, [], {}, "x", -1, 1e15, True):
            record = json.loads(json.dumps(good))
            place = record
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = odd
            write_json(tmp_path / str(number) / "evaluations" / "k2-0.json", record)
            number += 1
    save(tmp_path / "good", evaluation())
    assert number > 200
    page.as_html(make(tmp_path))


def test_a_wrong_leaderboard_is_refused(tmp_path):
    site.write([save(tmp_path, *[evaluation(alpha=a) for a in GRID])], tmp_path / "site")
    path = tmp_path / "site" / "leaderboard.json"
    good = json.loads(path.read_text())
    for change, told in (
        ({"schema": 9}, "schema version 9"),
        ({"kind": "x"}, "kind"),
        ({"rows": good["rows"] * 2}, "the same one"),
        ({"rows": [{"id": SCRIPT}]}, "rows"),
    ):
        write_json(path, {**good, **change})
        with pytest.raises(UsageError, match=told):
            boards.read(path)


def test_a_checkpoints_record_of_another_kind_tells_nothing(tmp_path):
    low = evaluation()
    bad = checkpoint(low)
    bad["config"] = "x"
    write_json(tmp_path / "style_overlap.json", bad)
    write_json(tmp_path / "results_1.json", harness(low))
    board = make(save(tmp_path, evaluation("org/other")))
    assert len(board["unknown"]) == 1
