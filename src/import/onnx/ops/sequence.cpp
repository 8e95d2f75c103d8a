// Sequences and optionals: lists of values that exist while a model is imported, not in graphs.
#include <algorithm>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

Item sequence_item(std::vector<Item> items) {
  Item it;
  it.kind = Item::Kind::kSequence;
  it.items = std::make_shared<std::vector<Item>>(std::move(items));
  return it;
}

const std::vector<Item>& items_of(OnnxNode& n, int64_t i) {
  const Item& it = n.item(i);
  require(it.kind == Item::Kind::kSequence, "Input ", i, " is not a sequence.");
  return *it.items;
}

constexpr int64_t kMaxItems = 1 << 20;  // that a tensor is split into

// An item of a sequence: ONNX has none of sequences, and a few of them that hold each other would be endless.
const Item& element(OnnxNode& n, int64_t i) {
  const Item& it = n.item(i);
  require(it.kind != Item::Kind::kSequence, "Input ", i, " is a sequence; an element of one is expected.");
  return it;
}

// A position, counted from the end where negative; `size` itself is allowed when something is inserted.
size_t position(OnnxNode& n, int64_t input, size_t size, bool insert) {
  int64_t at = n.int_value(input);
  const auto count = static_cast<int64_t>(size);
  if (at < 0) at += count;
  require(at >= 0 && at < count + (insert ? 1 : 0), "Position (", at, ") is outside the sequence of ", count,
          " items.");
  return static_cast<size_t>(at);
}

Built sequence_construct(OnnxNode& n) {
  std::vector<Item> items;
  for (int64_t i = 0; i < n.num_inputs(); ++i) items.push_back(element(n, i));
  return sequence_item(std::move(items));
}

Built sequence_empty(OnnxNode&) { return sequence_item({}); }

Built sequence_insert(OnnxNode& n) {
  std::vector<Item> items = items_of(n, 0);
  const size_t at = n.has(2) ? position(n, 2, items.size(), true) : items.size();
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), element(n, 1));
  return sequence_item(std::move(items));
}

Built sequence_erase(OnnxNode& n) {
  std::vector<Item> items = items_of(n, 0);
  require(!items.empty(), "Nothing can be erased from an empty sequence.");
  const size_t at = n.has(1) ? position(n, 1, items.size(), false) : items.size() - 1;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return sequence_item(std::move(items));
}

Built sequence_at(OnnxNode& n) {
  const std::vector<Item>& items = items_of(n, 0);
  return items[position(n, 1, items.size(), false)];
}

Built sequence_length(OnnxNode& n) {
  return n.constant(Tensor::i64({}, {static_cast<int64_t>(items_of(n, 0).size())}));
}

Built split_to_sequence(OnnxNode& n) {
  const Value x = n.input(0);
  const int64_t axis = normalize_axis(n.attr("axis", 0), x.shape().rank());
  const int64_t size = x.shape()[axis].value();
  require(size <= kMaxItems || n.has(1), "An axis of ", size, " elements is too long to be split into each.");
  std::vector<int64_t> parts;
  bool drop_axis = false;
  if (!n.has(1)) {
    parts.assign(static_cast<size_t>(size), 1);
    drop_axis = !n.attr("keepdims", true);
  } else if (n.input(1).shape().rank() == 0) {
    const int64_t each = n.int_value(1);
    require(each > 0 && size / each <= kMaxItems, "A size of parts (", each, ") does not fit an axis of ", size, ".");
    for (int64_t at = 0; at < size; at += std::min(each, size - at)) parts.push_back(std::min(each, size - at));
  } else {
    parts = n.ints(1);
  }
  std::vector<Item> items;
  int64_t start = 0;
  for (const int64_t len : parts) {
    const Value part = ops::narrow(x, {.axis = axis, .start = start, .len = len});
    items.push_back(n.like(drop_axis ? squeeze(part, {axis}) : part, 0));
    start = checked_add(start, len);
  }
  return sequence_item(std::move(items));
}

Built concat_from_sequence(OnnxNode& n) {
  const std::vector<Item>& items = items_of(n, 0);
  require(!items.empty(), "An empty sequence cannot be concatenated.");
  const bool new_axis = n.attr("new_axis", false);
  const int64_t axis = n.required_int("axis");
  Values parts;
  for (const Item& it : items) {
    const Value x = n.importer().value(it);
    parts.push_back(new_axis ? unsqueeze(x, {axis}) : x);
  }
  return n.result(parts.size() == 1 ? parts[0] : ops::concat(parts, {.axis = axis}), items[0].elem);
}

Built sequence_map(OnnxNode& n) {
  const GraphProto& body = n.graph_attr("body");
  const size_t count = items_of(n, 0).size();
  std::vector<std::vector<Item>> lists(body.outputs.size());
  for (size_t k = 0; k < count; ++k) {
    std::vector<Item> inputs;
    for (int64_t i = 0; i < n.num_inputs(); ++i) {
      const Item& it = n.item(i);
      if (it.kind == Item::Kind::kSequence) {
        require(it.items->size() == count, "Input ", i, " has ", it.items->size(), " items, not ", count, ".");
        inputs.push_back((*it.items)[k]);
      } else {
        inputs.push_back(it);
      }
    }
    const std::vector<Item> outputs = n.importer().import_body(body, inputs, n.frame());
    for (size_t o = 0; o < outputs.size(); ++o) {
      require(outputs[o].kind != Item::Kind::kSequence, "The body gives a sequence; an element of one is expected.");
      lists[o].push_back(outputs[o]);
    }
  }
  std::vector<Item> results;
  for (auto& list : lists) results.push_back(sequence_item(std::move(list)));
  return results;
}

Built optional(OnnxNode& n) { return n.has(0) ? n.item(0) : Item(); }

Built optional_has_element(OnnxNode& n) {
  return n.constant(Tensor::from_doubles(DType::Bool, {}, {{n.has(0) ? 1.0 : 0.0}}));
}

Built optional_get_element(OnnxNode& n) {
  require(n.has(0), "The optional is empty.");
  return n.item(0);
}

}  // namespace

Rows sequence_rows() {
  return {
      {"ConcatFromSequence", 11, concat_from_sequence},
      {"Optional", 15, optional},
      {"OptionalGetElement", 15, optional_get_element},
      {"OptionalHasElement", 15, optional_has_element},
      {"SequenceAt", 11, sequence_at},
      {"SequenceConstruct", 11, sequence_construct},
      {"SequenceEmpty", 11, sequence_empty},
      {"SequenceErase", 11, sequence_erase},
      {"SequenceInsert", 11, sequence_insert},
      {"SequenceLength", 11, sequence_length},
      {"SequenceMap", 17, sequence_map},
      {"SplitToSequence", 11, split_to_sequence},
  };
}

}  // namespace rlx::onnx
