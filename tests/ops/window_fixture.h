// Convolutions and pools as onnxruntime computes them (fixtures/make_onnx_windows.py).
#pragma once

#include <vector>

#include "core/npy.h"
#include "support/op_cases.h"

namespace rlx::test {

struct WindowFixture {
  Tensor x, w, y, indices;  // w of convolutions, indices of maxpool
  std::vector<int64_t> kernel, stride, padding, dilation, more;
};

inline std::vector<WindowFixture> window_fixtures(const std::string& kind) {
  static const std::map<std::string, Tensor> all = read_npz(RLX_FIXTURES "/onnx_windows.npz");
  std::vector<WindowFixture> out;
  for (;;) {
    const std::string key = str(kind, out.size());
    if (!all.contains(key + "_x")) break;
    const auto find = [&](const char* name) {
      const auto it = all.find(key + name);
      return it == all.end() ? Tensor(DType::F32, {0}) : it->second;
    };
    WindowFixture f = {find("_x"), find("_w"), find("_y"), find("_i"), {}, {}, {}, {}, {}};
    const Tensor list = find("_a");
    const auto rank = f.x.sizes().size() - 2;
    size_t at = 0;
    const auto take = [&](size_t n) {
      const std::vector<int64_t> part(list.values<int64_t>().begin() + static_cast<ptrdiff_t>(at),
                                      list.values<int64_t>().begin() + static_cast<ptrdiff_t>(at + n));
      at += n;
      return part;
    };
    f.kernel = take(rank);
    f.stride = take(rank);
    f.padding = take(2 * rank);
    f.dilation = take(rank);
    f.more = take(list.values<int64_t>().size() - at);
    out.push_back(std::move(f));
  }
  require(!out.empty(), "There are no fixtures of kind '", kind, "'.");
  return out;
}

}  // namespace rlx::test
