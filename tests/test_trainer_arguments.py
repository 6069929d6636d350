"""Fields of TrainingArguments as users give them."""

from __future__ import annotations

import pytest

from style_overlap.errors import UsageError
from style_overlap.trainers.arguments import DEFAULTS, OURS, parse_arguments

# Arguments


def test_values_are_yaml_and_get_the_type_that_the_field_declares(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("learning_rate: 1e-4\nmax_steps: 1e3\nadam_beta1: 0.8\n")
    pairs = ["learning_rate=2e-5", "bf16_full_eval=false", "report_to=[none]", "eval_steps=null",
             "lr_scheduler_type=cosine", "num_train_epochs=2", "optim_args=a=b"]  # fmt: skip
    assert parse_arguments(pairs, file) == {
        "learning_rate": 2e-5, "max_steps": 1000, "adam_beta1": 0.8, "bf16_full_eval": False,
        "report_to": ["none"], "eval_steps": None, "lr_scheduler_type": "cosine",
        "num_train_epochs": 2.0, "optim_args": "a=b",
    }  # fmt: skip
    assert isinstance(parse_arguments(["num_train_epochs=2"])["num_train_epochs"], float)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("learning_rat=1", "no field 'learning_rat': did you mean learning_rate?"),
        ("learning_rate", "expected name=value"),
        ("=3", "expected name=value"),
        ("learning_rate=fast", "learning_rate is 'fast': expected float"),
        ("max_steps=1.5", "max_steps is 1.5: expected int"),
        ("use_cpu=2", "use_cpu is 2: expected bool"),
        ("max_steps=true", "max_steps is True: expected int"),
        ("learning_rate=[1", "is not a YAML value"),
        ("num_train_epochs=-1", "num_train_epochs is -1: expected more than 0"),
        ("per_device_train_batch_size=0", "per_device_train_batch_size is 0: expected more than 0"),
        ("num_train_epochs=.nan", "expected more than 0"),
        ("seed=1", "seed cannot be set: use --seed"),
        ("output_dir=x", "use --output"),
        ("bf16=true", "use --dtype bf16"),
    ],
)
def test_a_field_that_cannot_be_set_so_is_refused(pair, message):
    with pytest.raises(UsageError) as error:
        parse_arguments([pair])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"- learning_rate", "no mapping"), (b"a: [", "not valid YAML"), (b"\xff", "not valid YAML")],
)
def test_a_file_that_holds_no_fields_is_refused(tmp_path, content, message):
    file = tmp_path / "settings.yaml"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        parse_arguments([], file)
    with pytest.raises(UsageError, match="cannot read"):
        parse_arguments([], tmp_path / "nowhere.yaml")


def test_our_own_fields_exist_in_this_version_of_transformers():
    from transformers import TrainingArguments

    assert set(OURS) | set(DEFAULTS) <= set(TrainingArguments.__dataclass_fields__)
