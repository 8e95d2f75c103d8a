#!/usr/bin/env bash
# seeds.sh TARGET FOLDER: fills FOLDER with valid inputs for a fuzz target, made from files that the tests have anyway.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=${1:?a fuzz target, such as npy_fuzz} folder=${2:?a folder}
mkdir -p "$folder"
case $target in
  npy_fuzz) pattern='\.np[yz]$' ;;
  text_fuzz) pattern='\.rlx$' ;;
  *) echo "seeds.sh: there are no seeds for target '$target'." >&2; exit 1 ;;
esac
find "$root/tests" "$root/examples" -type f 2>/dev/null | grep -E "$pattern" | while read -r file; do
  cp "$file" "$folder/$(sha1sum "$file" | cut -c1-16)"
done || true
echo "$folder: $(find "$folder" -type f | wc -l) inputs"
