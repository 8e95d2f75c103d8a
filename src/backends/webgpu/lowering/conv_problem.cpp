#include "backends/webgpu/lowering/conv_problem.h"

namespace rlx::webgpu {

int64_t volume(const Space& s) { return s[0] * s[1] * s[2]; }

Space space_of(const std::vector<int64_t>& list, int64_t rank, int64_t missing) {
  Space s = {missing, missing, missing};
  for (int64_t i = 0; i < rank; ++i) s[static_cast<size_t>(3 - rank + i)] = list[static_cast<size_t>(i)];
  return s;
}

Space space_of_sizes(const TensorType& type) {
  Space s = {1, 1, 1};
  const int64_t rank = type.rank() - 2;
  for (int64_t i = 0; i < rank; ++i) s[static_cast<size_t>(3 - rank + i)] = type.dim(i + 2).value();
  return s;
}

bool ConvProblem::pointwise() const {
  const Space ones = {1, 1, 1};
  return inside && slots == 1 && phases() == 1 && stride == ones && count == in && reads[0].at == Space{0, 0, 0};
}

static ConvProblem problem_of(int64_t groups, const TensorType& x, const TensorType& y) {
  ConvProblem c;
  c.batch = x.dim(0).value();
  c.cin = x.dim(1).value();
  c.cout = y.dim(1).value();
  c.groups = groups;
  c.in = space_of_sizes(x);
  c.out = space_of_sizes(y);
  return c;
}

ConvProblem forward_problem(const ops::Window& window, int64_t groups, const TensorType& x, const TensorType& y) {
  ConvProblem c = problem_of(groups, x, y);
  const Space kernel = space_of(window.kernel, window.rank(), 1),
              dilation = space_of(window.dilation, window.rank(), 1);
  const Space padding = space_of(window.padding, window.rank(), 0);
  c.stride = space_of(window.stride, window.rank(), 1);
  c.count = c.out;
  c.taps = c.slots = volume(kernel);
  c.inside = true;
  for (size_t a = 0; a < 3; ++a)
    c.inside &= padding[a] == 0 && (c.out[a] - 1) * c.stride[a] + (kernel[a] - 1) * dilation[a] < c.in[a];
  for (int64_t t = 0; t < c.taps; ++t) {
    const Space k = {t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1], t % kernel[2]};
    Space at;
    for (size_t a = 0; a < 3; ++a) at[a] = k[a] * dilation[a] - padding[a];
    c.reads.push_back({t, at});
  }
  c.channel_stride = c.taps;
  c.m_stride = c.cin_group() * c.taps;
  c.group_stride = c.m() * c.m_stride;
  return c;
}

ConvProblem transposed_problem(const ops::Window& window, int64_t groups, const TensorType& x, const TensorType& y) {
  ConvProblem c = problem_of(groups, x, y);
  const Space kernel = space_of(window.kernel, window.rank(), 1),
              dilation = space_of(window.dilation, window.rank(), 1);
  const Space padding = space_of(window.padding, window.rank(), 0);
  c.step = space_of(window.stride, window.rank(), 1);
  c.taps = volume(kernel);
  for (size_t a = 0; a < 3; ++a) {
    // A phase without a result, of a stride longer than it, is left out.
    c.step[a] = std::max<int64_t>(c.step[a], 1);
    c.count[a] = (c.out[a] + c.step[a] - 1) / c.step[a];
  }
  // Result o of phase r is q * step + r; tap k reads element (o + padding - k * dilation) / step where that is whole.
  std::vector<std::vector<ConvProblem::Slot>> phases;
  for (int64_t phase = 0; phase < c.phases(); ++phase) {
    const Space r = {phase / (c.step[1] * c.step[2]), phase / c.step[2] % c.step[1], phase % c.step[2]};
    std::vector<ConvProblem::Slot> reads;
    for (int64_t t = 0; t < c.taps; ++t) {
      const Space k = {t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1], t % kernel[2]};
      ConvProblem::Slot slot{.tap = t};
      bool whole = true;
      for (size_t a = 0; a < 3; ++a) {
        const int64_t from = r[a] + padding[a] - k[a] * dilation[a];
        whole &= from % c.step[a] == 0;
        slot.at[a] = from / c.step[a];
      }
      if (whole) reads.push_back(slot);
    }
    phases.push_back(std::move(reads));
  }
  for (const auto& reads : phases) c.slots = std::max(c.slots, static_cast<int64_t>(reads.size()));
  for (auto& reads : phases) {
    reads.resize(static_cast<size_t>(c.slots));
    c.reads.insert(c.reads.end(), reads.begin(), reads.end());
  }
  c.m_stride = c.taps;
  c.channel_stride = c.m() * c.taps;
  c.group_stride = c.cin_group() * c.channel_stride;
  return c;
}

}  // namespace rlx::webgpu
