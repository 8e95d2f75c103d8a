#!/usr/bin/env bash
# seeds.sh TARGET FOLDER [FROM]: fills FOLDER with valid inputs for a fuzz target, made from files that the tests have anyway; where
# the inputs are text or names, FOLDER.dict holds its words. Models (onnx_fuzz) come from FROM, by default the onnx package in .venv.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=${1:?a fuzz target, such as npy_fuzz} folder=${2:?a folder}
mkdir -p "$folder"
case $target in
  gguf_fuzz)
    "$root/.venv/bin/python" "$root/tests/fuzz/gguf_seeds.py" "$folder"
    { grep -hoE '(integers?|numbers?|boolean|text|positive|key|id)\("[a-z_.]+"' "$root"/src/models/*.cpp "$root"/src/models/*/*.cpp "$root/src/generate/language_model.cpp" |
        grep -oE '"[a-z_.]+"'
      printf '"%s"\n' llama gpt2 t5 bert yarn longrope; } | sort -u > "$folder.dict"
    pattern='\.gguf$' ;;
  hf_fuzz)
    "$root/.venv/bin/python" "$root/tests/fuzz/hf_seeds.py" "$folder"
    grep -hoE '"[a-z0-9_-]+"' "$root"/src/models/hf/config.cpp "$root/src/models/hf_source.cpp" | sort -u > "$folder.dict"
    pattern='\.nothing$' ;;
  npy_fuzz) pattern='\.np[yz]$' ;;
  onnx_fuzz)
    from=${3:-$(echo "$root"/.venv/lib/python3*/site-packages/onnx/backend/test/data)}
    [[ -d $from ]] || { echo "seeds.sh: there is no folder '$from' with models; ./dev setup installs onnx into .venv." >&2; exit 1; }
    find "$from" -name '*.onnx' -size -16k | while read -r file; do
      cp "$file" "$folder/$(sha1sum "$file" | cut -c1-16)"
    done
    { grep -hoE '\{"[A-Z][A-Za-z0-9]*", [0-9]+' "$root"/src/import/onnx/ops/*.cpp | grep -oE '[A-Z][A-Za-z0-9]*'
      grep -hoE '(attr|required_ints?)\("[a-z_A-Z]+"' "$root"/src/import/onnx/ops/*.cpp | grep -oE '"[a-z_A-Z]+"' | tr -d '"'; } |
      sort -u | sed 's/.*/"&"/' > "$folder.dict"
    pattern='\.onnx$' ;;
  safetensors_fuzz)  # the length of the header, the header, the data
    printf 'A\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}         12345678' > "$folder/one"
    printf '\213\0\0\0\0\0\0\0{"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},"c":{"dtype":"I64","shape":[0],"data_offsets":[6,6]}}123456' > "$folder/two"
    printf '%s\n' dtype shape data_offsets __metadata__ F64 F32 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 BOOL C64 F8_E4M3 F8_E5M2 F4 |
      sed 's/.*/"&"/' > "$folder.dict"
    pattern='\.safetensors$' ;;
  tokenizer_fuzz)  # tokenizers, templates and texts: the first byte says which
    "$root/.venv/bin/python" "$root/tests/text/fuzz_seeds.py" "$folder"
    pattern='\.nothing$' ;;
  text_fuzz) pattern='\.rlx$' ;;
  wav_fuzz)  # no test has a file of its own: stereo of 16 bits, mono floats with a chunk before them
    printf 'RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0\x40\x1f\0\0\0\x7d\0\0\4\0\x10\0data\x8\0\0\0\1\2\3\4\5\6\7\x8' > "$folder/stereo"
    printf 'RIFF\x34\0\0\0WAVELIST\3\0\0\0odd\0fmt \x10\0\0\0\3\0\1\0\x40\x1f\0\0\0\x7d\0\0\4\0\x20\0data\4\0\0\0\0\0\0?' > "$folder/floats"
    pattern='\.wav$' ;;
  *) echo "seeds.sh: there are no seeds for target '$target'." >&2; exit 1 ;;
esac
find "$root/tests" "$root/examples" -type f 2>/dev/null | grep -E "$pattern" | while read -r file; do
  cp "$file" "$folder/$(sha1sum "$file" | cut -c1-16)"
done || true
if [[ $target == text_fuzz ]]; then  # the words of the language: ops, attributes, dtypes
  { grep -oE '`[a-z_0-9]+' "$root/docs/ops.md" | tr -d '`'
    printf '%s\n' graph symbol require update return none true false f32 f16 bf16 f64 i8 i16 i32 i64 u8 u32 bool c64; } |
    sort -u | sed 's/.*/"&"/' > "$folder.dict"
fi
echo "$folder: $(find "$folder" -type f | wc -l) inputs"
