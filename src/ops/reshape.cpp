#include "rlx/ops/reshape.h"

#include <algorithm>
#include <numeric>

#include "ops/infer.h"

namespace rlx::ops {

namespace {

// A product of dims as number * atoms. An atom is a symbol, or an affine expression without a common factor; products
// that have a symbol of their own are taken apart again, so that equal products meet in the same form.
struct Factors {
  int64_t number = 1;
  std::vector<Dim> atoms;

  void multiply(const Dim& dim, const SymbolTable& symbols) {
    if (dim.is_static()) {
      number = checked_mul(number, dim.value());
      return;
    }
    const int64_t common = std::gcd(dim.scale(), dim.offset());
    number = checked_mul(number, common);
    const Dim atom = Dim::symbol(dim.symbol_id(), dim.scale() / common, dim.offset() / common);
    const auto it = symbols.derived().find(dim.symbol_id());
    if (atom == Dim::symbol(dim.symbol_id()) && it != symbols.derived().end() &&
        it->second.kind == DerivedDim::Kind::kProduct) {
      multiply(it->second.lhs, symbols);
      multiply(it->second.rhs, symbols);
    } else {
      atoms.push_back(atom);
    }
  }

  Dim product(SymbolTable& symbols) {
    std::sort(atoms.begin(), atoms.end(), [](const Dim& a, const Dim& b) {
      return std::tuple(a.symbol_id(), a.scale(), a.offset()) < std::tuple(b.symbol_id(), b.scale(), b.offset());
    });
    return symbols.mul(symbols.product(atoms), Dim(number));
  }
};

// Drops the atoms and the numbers that both have.
void cancel(Factors& a, Factors& b) {
  std::erase_if(a.atoms, [&](const Dim& atom) {
    const auto it = std::find(b.atoms.begin(), b.atoms.end(), atom);
    if (it == b.atoms.end()) return false;
    b.atoms.erase(it);
    return true;
  });
  const int64_t common = std::gcd(a.number, b.number);
  if (common == 0) return;
  a.number /= common;
  b.number /= common;
}

}  // namespace

static Types infer(const InferCall& call) {
  const TensorType& x = call.input(0);
  TensorType y{Shape(call.attrs<ReshapeAttrs>().new_shape), x.dtype};
  Factors total, known;
  for (const Dim& d : x.shape) total.multiply(d, call.symbols);
  int64_t open = -1;
  for (int64_t i = 0; i < y.rank(); ++i) {
    if (y.dim(i).is(-1)) {
      require(open < 0, "New shape ", y.shape, " has more than one -1.");
      open = i;
      continue;
    }
    require(!y.dim(i).is_static() || y.dim(i).value() >= 0, "New size (", y.dim(i),
            ") is negative; only -1 has a meaning.");
    known.multiply(y.dim(i), call.symbols);
  }
  const Shape asked = y.shape;
  if (open < 0) {
    cancel(total, known);
    // What symbols are left is checked when they are bound.
    require(!total.atoms.empty() || !known.atoms.empty() || total.number == known.number, "Shape ", x.shape,
            " does not have as many elements as ", asked, ".");
    return y;
  }
  require(known.number != 0, "Size -1 of ", asked, " can be anything: the other sizes have no elements.");
  cancel(total, known);
  require(total.number % known.number == 0 || !total.atoms.empty() || !known.atoms.empty(), "Elements of shape ",
          x.shape, " are not a multiple of the known sizes of ", asked, ".");
  y.shape[open] = call.symbols.div(total.product(call.symbols), known.product(call.symbols));
  return y;
}

static std::optional<ViewOf> view(const InferCall&) { return ViewOf{}; }

constinit const Op<ReshapeAttrs> reshape{{.name = "reshape",
                                          .category = "Shape",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .infer = infer,
                                          .view = view,
                                          .doc = "The same elements in another shape; one -1 is what remains."}};

}  // namespace rlx::ops
