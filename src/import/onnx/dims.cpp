// Integer tensors as sizes: the shape arithmetic of exporters, on symbols.
#include <algorithm>

#include "import/onnx/importer.h"
#include "rlx/ops.h"

namespace rlx::onnx {

namespace {

constexpr int64_t kMaxElements = 256;  // of a list of sizes; longer tensors are data

using Dims = std::optional<std::vector<Dim>>;

// Symbols are sizes: at least 0.
std::optional<bool> equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_static() && b.is_static()) return false;
  if (a.is_static()) return equal(b, a);
  if (b.is_static() && b.value() < a.offset()) return false;
  return std::nullopt;
}

class Walker {
 public:
  Walker(Importer& importer) : importer_(importer), graph_(importer.graph()) {}

  // Every value once: a chain of x + x would be walked 2^n times otherwise.
  Dims of(ValueId id, int depth = 0) {
    if (const auto it = seen_.find(id); it != seen_.end()) return it->second;
    return seen_[id] = find(id, depth);
  }

 private:
  Dims find(ValueId id, int depth) {
    const TensorType& type = graph_.type(id);
    if (depth > 200 || !(is_int(type.dtype) || type.dtype == DType::Bool) || type.rank() > 1) return std::nullopt;
    const std::optional<int64_t> count = type.shape.try_elements();
    if (!count || *count > kMaxElements) return std::nullopt;
    if (const std::optional<Tensor> t = importer_.try_known(id)) {
      const Tensor ints = t->cast(DType::I64);
      return std::vector<Dim>(ints.values<int64_t>().begin(), ints.values<int64_t>().end());
    }
    const Node& node = graph_.node_of(id);
    if (node.op == &ops::dim_value) return std::vector<Dim>{node.attrs.as<ops::DimValueAttrs>().dim};
    std::vector<Dims> in;
    if (node.inputs.size() > 16) return std::nullopt;
    for (const ValueId v : node.inputs) {
      in.push_back(of(v, depth + 1));
      if (!in.back()) return std::nullopt;
    }
    try {
      return apply(node, in, *count);
    } catch (const Error&) {  // not expressible: a difference of two symbols, a product that overflows
      return std::nullopt;
    }
  }

  Dims apply(const Node& node, const std::vector<Dims>& in, int64_t count) {
    const OpDef* op = node.op;
    if (op == &ops::cast && size_of(node.results[0].type.dtype) < 4) return std::nullopt;  // it may change the values
    if (op == &ops::cast || op == &ops::reshape) return in[0];
    if (op == &ops::expand) return broadcast(*in[0], count);
    if (op == &ops::concat) {
      std::vector<Dim> all;
      for (const Dims& d : in) all.insert(all.end(), d->begin(), d->end());
      return all;
    }
    if (op == &ops::narrow) {
      const auto& attrs = node.attrs.as<ops::NarrowAttrs>();
      if (!attrs.start.is_static()) return std::nullopt;
      const auto first = in[0]->begin() + attrs.start.value();
      return std::vector<Dim>(first, first + count);
    }
    if (op == &ops::gather) {
      std::vector<Dim> picked;
      const int64_t n = static_cast<int64_t>(in[0]->size());
      for (const Dim& i : *in[1]) {
        if (!i.is_static() || i.value() < -n || i.value() >= n) return std::nullopt;
        picked.push_back((*in[0])[static_cast<size_t>(i.value() < 0 ? i.value() + n : i.value())]);
      }
      return picked;
    }
    if (op == &ops::reduce_prod && count == 1) {
      Dim all = 1;
      for (const Dim& d : *in[0]) all = graph_.symbols().mul(all, d);
      return std::vector<Dim>{all};
    }
    if (op == &ops::where) {
      const std::vector<Dim> c = broadcast(*in[0], count), a = broadcast(*in[1], count), b = broadcast(*in[2], count);
      std::vector<Dim> out;
      for (size_t i = 0; i < c.size(); ++i) {
        if (!c[i].is_static()) return std::nullopt;
        out.push_back(c[i].value() != 0 ? a[i] : b[i]);
      }
      return out;
    }
    if (in.size() != 2) return std::nullopt;
    const std::vector<Dim> a = broadcast(*in[0], count), b = broadcast(*in[1], count);
    std::vector<Dim> out;
    for (size_t i = 0; i < a.size(); ++i) {
      const std::optional<Dim> d = combine(op, a[i], b[i]);
      if (!d) return std::nullopt;
      out.push_back(*d);
    }
    return out;
  }

  static std::vector<Dim> broadcast(const std::vector<Dim>& dims, int64_t count) {
    return dims.size() == 1 ? std::vector<Dim>(static_cast<size_t>(count), dims[0]) : dims;
  }

  std::optional<Dim> combine(const OpDef* op, const Dim& a, const Dim& b) {
    SymbolTable& symbols = graph_.symbols();
    if (op == &ops::add) return symbols.add(a, b);
    if (op == &ops::sub) return symbols.sub(a, b);
    if (op == &ops::mul) return symbols.mul(a, b);
    if (op == &ops::div && b.is_static() && b.value() > 0) return symbols.div(a, b);
    if (op == &ops::eq || op == &ops::ne) {
      const std::optional<bool> same = equal(a, b);
      if (same) return Dim(static_cast<int64_t>(*same == (op == &ops::eq)));
    }
    if ((op == &ops::max || op == &ops::min) && a == b) return a;
    return std::nullopt;
  }

  Importer& importer_;
  Graph& graph_;
  std::unordered_map<ValueId, Dims> seen_;
};

}  // namespace

std::optional<std::vector<Dim>> Importer::try_dims(ValueId id) { return Walker(*this).of(id); }

}  // namespace rlx::onnx
