#include "rlx/attrs.h"

#include "ir/text.h"
#include "rlx/graph.h"

namespace rlx {

std::vector<Field> Attrs::fields() const {
  std::vector<Field> out;
  // The fields are only read: Attrs is immutable, and the one writer (edit, below) works on a private copy.
  type_->fields(const_cast<void*>(value_.get()), out);
  return out;
}

void Attrs::check_type(bool same) { RLX_ASSERT(same && "the attributes are of another op"); }

bool Attrs::operator==(const Attrs& other) const {
  return type_ == other.type_ && (value_ == other.value_ || print_attrs(*this) == print_attrs(other));
}

uint64_t Attrs::hash() const { return stable_hash(print_attrs(*this)); }

namespace {

// A copy of the attributes with every field shown to `edit`.
template <class Edit>
Attrs edited(const Attrs& attrs, const Edit& edit) {
  std::shared_ptr<void> copy = attrs.type().copy(attrs.get());
  std::vector<Field> fields;
  attrs.type().fields(copy.get(), fields);
  for (Field& f : fields) std::visit(edit, f.ref);
  return Attrs(attrs.type(), std::move(copy));
}

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;  // clang 14 does not deduce aggregates by itself

}  // namespace

bool Attrs::has_dims() const {
  for (const Field& f : fields())
    if (std::holds_alternative<Dim*>(f.ref) || std::holds_alternative<std::vector<Dim>*>(f.ref)) return true;
  return false;
}

Attrs Attrs::bind(const DimBinding& binding) const {
  if (!has_dims() && graphs().empty()) return *this;
  return edited(*this, Overload{
                           [&](Dim* d) { *d = d->bind(binding); },
                           [&](std::vector<Dim>* dims) {
                             for (Dim& d : *dims) d = d.bind(binding);
                           },
                           [&](GraphPtr* g) {
                             if (*g) *g = std::make_shared<const Graph>(rlx::bind(**g, binding));
                           },
                           [](auto&&) {},
                       });
}

Attrs Attrs::map_graphs(const std::function<GraphPtr(const GraphPtr&)>& f) const {
  return edited(*this, Overload{
                           [&](GraphPtr* g) {
                             if (*g) *g = f(*g);
                           },
                           [](auto&&) {},
                       });
}

std::vector<GraphPtr> Attrs::graphs() const {
  std::vector<GraphPtr> out;
  for (const Field& f : fields())
    if (const auto* g = std::get_if<GraphPtr*>(&f.ref); g && **g) out.push_back(**g);
  return out;
}

}  // namespace rlx
