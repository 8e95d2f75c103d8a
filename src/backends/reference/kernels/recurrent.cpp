#include <cmath>
#include <vector>

#include "backends/reference/kernels/kernels.h"
#include "ops/recurrent.h"

namespace rlx::reference {

namespace {

using Row = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One cell (a layer in one direction) on one sequence of the batch.
class CellRun {
 public:
  CellRun(const Call& call, const ops::Recurrent& r, int64_t index, int64_t in)
      : call_(call), r_(r), index_(index), width_(r.width(index / r.directions(), in)) {
    first_ = r.input_weights(index, in);
  }

  // h (and c) before the step become those after it.
  void step(const double* x, Row& h, Row& c) const {
    const int64_t n = r_.hidden;
    Row sums(static_cast<size_t>(r_.rows())), hidden(sums.size());
    for (int64_t g = 0; g < r_.rows(); ++g) {
      double sum = bias(0, g);
      for (int64_t i = 0; i < width_; ++i) sum += call_.reader(1)[first_ + g * width_ + i] * x[i];
      sums[static_cast<size_t>(g)] = sum;
      hidden[static_cast<size_t>(g)] = bias(1, g) + product(g, h);
    }
    const auto at = [&](int64_t gate, int64_t i) { return static_cast<size_t>(gate * n + i); };
    const auto both = [&](int64_t gate, int64_t i) { return sums[at(gate, i)] + hidden[at(gate, i)]; };
    Row next(h.size());
    switch (r_.cell) {
      case ops::Cell::kRnn:
        for (int64_t i = 0; i < n; ++i) next[at(0, i)] = r_.relu ? relu(both(0, i)) : std::tanh(both(0, i));
        break;
      case ops::Cell::kLstm:
        for (int64_t i = 0; i < n; ++i) {
          double& cell = c[at(0, i)];
          const double input = sigmoid(both(0, i) + peephole(0, i, cell));
          const double forget = sigmoid(both(1, i) + peephole(1, i, cell));
          cell = forget * cell + input * std::tanh(both(2, i));
          next[at(0, i)] = sigmoid(both(3, i) + peephole(2, i, cell)) * std::tanh(cell);
        }
        break;
      case ops::Cell::kGru: {
        Row scaled = h;  // by r, where the reset comes first
        for (int64_t i = 0; i < n; ++i) scaled[at(0, i)] *= sigmoid(both(0, i));
        for (int64_t i = 0; i < n; ++i) {
          const double reset = sigmoid(both(0, i)), update = sigmoid(both(1, i));
          const double seen =
              r_.reset_after ? reset * hidden[at(2, i)] : bias(1, 2 * n + i) + product(2 * n + i, scaled);
          next[at(0, i)] = (1 - update) * std::tanh(sums[at(2, i)] + seen) + update * h[at(0, i)];
        }
        break;
      }
    }
    h = next;
  }

 private:
  static double relu(double x) { return x < 0 ? 0 : x; }  // NaN stays
  double bias(int64_t which, int64_t row) const {
    return r_.bias ? call_.reader(r_.bias_operand())[(index_ * 2 + which) * r_.rows() + row] : 0;
  }
  double peephole(int64_t gate, int64_t i, double cell) const {
    return r_.peephole ? call_.reader(r_.peephole_operand())[(index_ * 3 + gate) * r_.hidden + i] * cell : 0;
  }
  double product(int64_t row, const Row& h) const {
    double sum = 0;
    for (int64_t i = 0; i < r_.hidden; ++i)
      sum += call_.reader(2)[(index_ * r_.rows() + row) * r_.hidden + i] * h[static_cast<size_t>(i)];
    return sum;
  }

  const Call& call_;
  const ops::Recurrent& r_;
  int64_t index_, width_, first_;
};

void run(const Call& call, const ops::Recurrent& r) {
  const int64_t batch = call.input(0).dim(0), seq = call.input(0).dim(1), in = call.input(0).dim(2);
  const int64_t n = r.hidden, d = r.directions(), wide = d * n;
  const Reader x = call.reader(0);
  for (int64_t b = 0; b < batch; ++b) {
    Row layer_in;  // [seq, width]; never rounded between layers
    for (int64_t i = 0; i < seq * in; ++i) layer_in.push_back(x[b * seq * in + i]);
    for (int64_t layer = 0; layer < r.layers; ++layer) {
      Row layer_out(static_cast<size_t>(seq * wide));
      for (int64_t direction = 0; direction < d; ++direction) {
        const int64_t index = layer * d + direction;
        const CellRun cell(call, r, index, in);
        Row states[2] = {Row(static_cast<size_t>(n)), Row(static_cast<size_t>(n))};
        for (int64_t s = 0; s < r.states() && r.carry; ++s)
          for (int64_t i = 0; i < n; ++i)
            states[s][static_cast<size_t>(i)] = call.reader(r.state_operand() + s)[(index * batch + b) * n + i];
        for (int64_t step = 0; step < seq; ++step) {
          const int64_t t = r.backwards(index) ? seq - 1 - step : step;
          cell.step(layer_in.data() + t * r.width(layer, in), states[0], states[1]);
          for (int64_t i = 0; i < n; ++i)
            layer_out[static_cast<size_t>(t * wide + direction * n + i)] = states[0][static_cast<size_t>(i)];
        }
        for (int64_t s = 0; s < r.states(); ++s)
          for (int64_t i = 0; i < n && call.wants(1 + s); ++i)
            call.writer(1 + s).set((index * batch + b) * n + i, states[s][static_cast<size_t>(i)]);
      }
      layer_in = layer_out;
    }
    for (int64_t i = 0; i < seq * wide && call.wants(0); ++i)
      call.writer(0).set(b * seq * wide + i, layer_in[static_cast<size_t>(i)]);
  }
}

}  // namespace

void gru(const Call& call) { run(call, ops::recurrent_of(call.attrs<ops::GruAttrs>())); }
void lstm(const Call& call) { run(call, ops::recurrent_of(call.attrs<ops::LstmAttrs>())); }
void rnn(const Call& call) { run(call, ops::recurrent_of(call.attrs<ops::RnnAttrs>())); }

}  // namespace rlx::reference
