from __future__ import annotations

import logging

import pytest
import torch

from style_overlap import devices
from style_overlap.devices import pick_device, pick_dtype
from style_overlap.errors import UsageError

CPU = torch.device("cpu")


@pytest.fixture
def without_accelerator(monkeypatch):
    monkeypatch.setattr(devices, "_device_count", lambda kind: 0)


@pytest.fixture
def one_gpu(monkeypatch):
    monkeypatch.setattr(devices, "_device_count", lambda kind: int(kind == "cuda"))


def test_the_harness_default_falls_back_to_the_cpu_and_says_so(without_accelerator, caplog):
    with caplog.at_level(logging.INFO):
        assert pick_device("cuda:0") == CPU
    assert [record.getMessage() for record in caplog.records] == [
        "no CUDA device here: running on cpu"
    ]


def test_no_name_is_the_best_device(one_gpu):
    assert pick_device(None) == torch.device("cuda")
    assert pick_device("cuda:0") == torch.device("cuda:0")
    assert pick_device("cpu") == CPU


@pytest.mark.parametrize("name", ["cuda:7", "mps", "xpu:1"])
def test_a_named_device_that_is_not_there_is_refused(one_gpu, name):
    with pytest.raises(UsageError, match="give --device cuda"):
        pick_device(name)


def test_cuda_by_name_is_refused_without_one(without_accelerator):
    with pytest.raises(UsageError, match="there is none: give --device cpu"):
        pick_device("cuda")


def test_an_unknown_device_is_refused():
    with pytest.raises(UsageError, match="'gpu': expected cpu, cuda"):
        pick_device("gpu")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("fp32", torch.float32),
        ("float32", torch.float32),
        ("torch.float32", torch.float32),
        ("BF16", torch.bfloat16),
        ("fp16", torch.float16),
        (torch.bfloat16, torch.bfloat16),
    ],
)
def test_number_formats_by_name(name, dtype):
    assert pick_dtype(name, CPU) == dtype


@pytest.mark.parametrize("name", ["int8", "fp8", torch.int64, ""])
def test_an_unknown_number_format_is_refused(name):
    with pytest.raises(UsageError, match="dtype is"):
        pick_dtype(name, CPU)


@pytest.mark.parametrize(
    ("found", "intel", "dtype"),
    [
        ({"avx512_bf16": True}, False, torch.bfloat16),
        ({"avx512_bf16": True}, True, torch.float32),
        ({"avx512_bf16": True, "amx_bf16": True}, True, torch.bfloat16),
        ({"bf16": True}, False, torch.bfloat16),
        ({"avx512_f": True, "avx512_bf16": False}, False, torch.float32),
    ],
)
def test_auto_is_bf16_only_where_the_cpu_is_faster_in_it(monkeypatch, found, intel, dtype):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)
    monkeypatch.setattr(devices, "_made_by_intel", lambda: intel)
    assert pick_dtype("auto", CPU) == dtype


@pytest.mark.parametrize(("native", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_auto_asks_an_older_torch_in_its_own_way(monkeypatch, native, dtype):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False, raising=False)
    monkeypatch.setattr(devices, "_made_by_intel", lambda: False)
    assert pick_dtype("auto", CPU) == dtype


def test_auto_on_a_gpu_does_not_count_emulated_bf16(monkeypatch):
    asked = {}

    def supported(including_emulation=True):
        asked["emulation"] = including_emulation
        return False

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    assert pick_dtype("auto", torch.device("cuda:0")) == torch.float32
    assert asked == {"emulation": False}
