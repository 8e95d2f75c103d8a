// Ensembles of decision trees (ai.onnx.ml). All rows and all trees walk down together, one level per step: the node
// numbers are a tensor [rows, trees], and a leaf is its own child.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/ml.h"

namespace rlx::onnx {

namespace {

enum class Mode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };

struct Forest {
  std::vector<Mode> mode;
  std::vector<int64_t> feature, yes, no, missing_yes;
  std::vector<double> value;
  std::vector<int64_t> roots;

  int64_t size() const { return static_cast<int64_t>(mode.size()); }
  int64_t add(Mode m, int64_t f, double v, bool missing) {
    mode.push_back(m);
    feature.push_back(f);
    value.push_back(v);
    missing_yes.push_back(missing ? 1 : 0);
    yes.push_back(size() - 1);
    no.push_back(size() - 1);
    return size() - 1;
  }
};

// What leaves add to the targets: a row per node.
struct LeafTable {
  int64_t targets;
  std::vector<double> weights;  // [nodes, targets]
  LeafTable(const Forest& forest, int64_t count, double otherwise) : targets(count) {
    require(count > 0 && (count <= 4096 || checked_mul(forest.size(), count) <= 1 << 20), "The number of targets (",
            count, ") is out of range.");
    weights.assign(static_cast<size_t>(forest.size() * count), otherwise);
  }
  double& at(int64_t node, int64_t target) {
    require(target >= 0 && target < targets, "The target ", target, " is not one of ", targets, ".");
    return weights[static_cast<size_t>(node * targets + target)];
  }
};

// The number of steps from the roots to the deepest leaf.
int64_t depth_of(const Forest& forest) {
  std::vector<int64_t> level = forest.roots;
  int64_t depth = 0;
  while (true) {
    std::vector<int64_t> next;
    for (const int64_t node : level) {
      const auto i = static_cast<size_t>(node);
      if (forest.mode[i] != Mode::kLeaf) next.insert(next.end(), {forest.yes[i], forest.no[i]});
    }
    if (next.empty()) return depth;
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    level = std::move(next);
    require(++depth <= forest.size(), "The nodes of a tree form a cycle.");
  }
}

Value compare(OnnxNode& n, Mode mode, const Value& x, const Value& limit) {
  switch (mode) {
    case Mode::kLeq: return ops::le(x, limit);
    case Mode::kLt: return ops::lt(x, limit);
    case Mode::kGte: return ops::ge(x, limit);
    case Mode::kGt: return ops::gt(x, limit);
    case Mode::kEq: return ops::eq(x, limit);
    case Mode::kNeq: return ops::ne(x, limit);
    default: n.unsupported("A node of a tree has a mode that is not known.");
  }
}

// The weights of the leaf that each row reaches in each tree: [rows, trees, targets].
Value walk(OnnxNode& n, const Forest& forest, const LeafTable& leaves, const Value& x) {
  const int64_t trees = static_cast<int64_t>(forest.roots.size());
  require(trees > 0, "There is no tree.");
  const Dim rows = x.shape()[0], features = x.shape()[1];
  for (size_t i = 0; i < forest.feature.size(); ++i)
    require(forest.mode[i] == Mode::kLeaf ||
                (forest.feature[i] >= 0 && (!features.is_static() || forest.feature[i] < features.value())),
            "The feature ", forest.feature[i], " is not one of ", features, ".");
  const Value flat = reshape_to(x, {n.symbols().mul(rows, features)});
  const Value row = unsqueeze(count_up(n, rows) * size_as_scalar(n, features), {1});
  const auto table = [&](const std::vector<int64_t>& values) { return n.ints_constant(values); };
  const Value feature = table(forest.feature), yes = table(forest.yes), no = table(forest.no);
  const Value limit = n.constant(Tensor::from_doubles(x.dtype(), {forest.size()}, forest.value));
  std::vector<Mode> modes;
  std::vector<int64_t> mode_numbers;
  for (const Mode m : forest.mode) {
    mode_numbers.push_back(static_cast<int64_t>(m));
    if (m != Mode::kLeaf && std::find(modes.begin(), modes.end(), m) == modes.end()) modes.push_back(m);
  }
  const Value mode = table(mode_numbers);
  const bool any_missing =
      std::any_of(forest.missing_yes.begin(), forest.missing_yes.end(), [](int64_t m) { return m != 0; });
  const Value missing = table(forest.missing_yes);
  Value at = expand_to(unsqueeze(table(forest.roots), {0}), Shape{rows, Dim(trees)});
  const int64_t depth = depth_of(forest);
  for (int64_t level = 0; level < depth; ++level) {
    const Value place = row + ops::gather(feature, at, {.axis = 0});
    const Value value = ops::gather(flat, place, {.axis = 0});
    const Value bound = ops::gather(limit, at, {.axis = 0});
    Value right = compare(n, modes[0], value, bound);
    for (size_t m = 1; m < modes.size(); ++m) {
      const Value chosen =
          ops::eq(ops::gather(mode, at, {.axis = 0}), n.scalar(static_cast<double>(modes[m]), DType::I64));
      right = ops::where(chosen, compare(n, modes[m], value, bound), right);
    }
    if (any_missing) {
      const Value track = cast_to(ops::gather(missing, at, {.axis = 0}), DType::Bool);
      right = ops::where(ops::ne(value, value), ops::where(track, track, right), right);
    }
    const Value up = ops::gather(yes, at, {.axis = 0}), down = ops::gather(no, at, {.axis = 0});
    at = ops::where(right, up, down);
  }
  const Value weights = n.constant(Tensor::from_doubles(x.dtype(), {forest.size(), leaves.targets}, leaves.weights));
  return ops::gather(weights, at, {.axis = 0});
}

enum class Aggregate { kAverage, kSum, kMin, kMax };

double identity_of(Aggregate how, DType dtype) {
  const double far = dtype == DType::F64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  return how == Aggregate::kMin ? far : how == Aggregate::kMax ? -far : 0;
}

Value aggregate(OnnxNode& n, const Value& weights, Aggregate how) {
  const ops::ReduceAttrs trees{.axes = {1}, .keep_dim = false};
  switch (how) {
    case Aggregate::kSum: return ops::reduce_sum(weights, trees);
    case Aggregate::kAverage: return ops::reduce_mean(weights, trees);
    case Aggregate::kMin: return ops::reduce_min(weights, trees);
    case Aggregate::kMax: return ops::reduce_max(weights, trees);
  }
  n.unsupported("The aggregate function is not known.");
}

// ---- TreeEnsemble (opset 5)

std::vector<double> doubles_attr(OnnxNode& n, std::string_view name) {
  const HostValue value = n.tensor_attr(name);
  require(value.kind == HostValue::Kind::kTensor, "Attribute '", name, "' is not a tensor of numbers.");
  return value.tensor.to_doubles();
}

struct NodeTables {
  std::vector<int64_t> feature, yes, no, yes_leaf, no_leaf, missing;
  std::vector<double> splits, modes, members;
};

// Adds the sub-tree of interior node or leaf `at`; its number in the forest. A test for membership becomes a chain of
// tests for equality.
class EnsembleReader {
 public:
  EnsembleReader(const NodeTables& tables, int64_t leaves, Forest& forest) : t_(tables), forest_(forest) {
    const size_t count = t_.splits.size();
    require(t_.modes.size() == count && t_.feature.size() == count && t_.yes.size() == count && t_.no.size() == count &&
                t_.yes_leaf.size() == count && t_.no_leaf.size() == count &&
                (t_.missing.empty() || t_.missing.size() == count),
            "The attributes of the trees' nodes have different lengths.");
    for (int64_t i = 0; i < leaves; ++i) forest_.add(Mode::kLeaf, 0, 0, false);
    leaves_ = leaves;
    // Members of node after node, each list ended by a NaN.
    size_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      const double m = t_.modes[i];
      require(m >= 0 && m <= 6 && m == std::floor(m), "The mode ", m, " of a tree's node is not known.");
      const auto mode = static_cast<Mode>(static_cast<int>(m));
      const bool missing = !t_.missing.empty() && t_.missing[i] != 0;
      std::vector<double> values{t_.splits[i]};
      if (mode == Mode::kMember) {
        values.clear();
        for (; next < t_.members.size() && !std::isnan(t_.members[next]); ++next) values.push_back(t_.members[next]);
        require(next < t_.members.size(), "The members of a tree's node are missing.");
        ++next;
        if (values.empty()) values.push_back(std::numeric_limits<double>::quiet_NaN());  // nothing is a member
      }
      std::vector<int64_t> chain;
      for (const double v : values)
        chain.push_back(forest_.add(mode == Mode::kMember ? Mode::kEq : mode, t_.feature[i], v, missing));
      chains_.push_back(std::move(chain));
    }
    for (size_t i = 0; i < count; ++i) {
      const int64_t yes = target(t_.yes[i], t_.yes_leaf[i] != 0), no = target(t_.no[i], t_.no_leaf[i] != 0);
      for (size_t k = 0; k < chains_[i].size(); ++k) {
        const auto node = static_cast<size_t>(chains_[i][k]);
        forest_.yes[node] = yes;
        forest_.no[node] = k + 1 < chains_[i].size() ? chains_[i][k + 1] : no;
      }
    }
  }

  // A tree whose root has one leaf on both sides is that leaf.
  int64_t root(int64_t at) const { return target(at, false); }

 private:
  int64_t target(int64_t at, bool leaf) const {
    const int64_t count = leaf ? leaves_ : static_cast<int64_t>(chains_.size());
    require(at >= 0 && at < count, "A tree's node has child ", at, " of ", count, ".");
    return leaf ? at : chains_[static_cast<size_t>(at)][0];
  }

  const NodeTables& t_;
  Forest& forest_;
  int64_t leaves_ = 0;
  std::vector<std::vector<int64_t>> chains_;
};

Built tree_ensemble(OnnxNode& n) {
  const Value x = feature_matrix(n, 0);
  NodeTables t;
  t.feature = n.required_ints("nodes_featureids");
  t.yes = n.required_ints("nodes_truenodeids");
  t.no = n.required_ints("nodes_falsenodeids");
  t.yes_leaf = n.required_ints("nodes_trueleafs");
  t.no_leaf = n.required_ints("nodes_falseleafs");
  t.missing = n.attr("nodes_missing_value_tracks_true", std::vector<int64_t>());
  t.splits = doubles_attr(n, "nodes_splits");
  t.modes = doubles_attr(n, "nodes_modes");
  if (n.has_attr("membership_values")) t.members = doubles_attr(n, "membership_values");
  const std::vector<int64_t> targets = n.required_ints("leaf_targetids");
  const std::vector<double> weights = doubles_attr(n, "leaf_weights");
  require(targets.size() == weights.size(), "There are ", targets.size(), " targets for ", weights.size(), " leaves.");
  Forest forest;
  const EnsembleReader reader(t, static_cast<int64_t>(weights.size()), forest);
  for (const int64_t root : n.required_ints("tree_roots")) forest.roots.push_back(reader.root(root));
  const int64_t how_number = n.attr("aggregate_function", 1);
  require(how_number >= 0 && how_number <= 3, "The aggregate function ", how_number, " is not known.");
  const auto how = static_cast<Aggregate>(how_number);
  LeafTable leaves(forest, n.attr("n_targets", 1), identity_of(how, x.dtype()));
  for (size_t i = 0; i < targets.size(); ++i) leaves.at(static_cast<int64_t>(i), targets[i]) = weights[i];
  const Value y = aggregate(n, walk(n, forest, leaves, x), how);
  const int64_t post = n.attr("post_transform", 0);
  constexpr const char* kPost[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  require(post >= 0 && post < 5, "The post transform ", post, " is not known.");
  return post_transform(n, y, kPost[post]);
}

// ---- TreeEnsembleClassifier and TreeEnsembleRegressor (opsets 1 and 3)

// Floats, or since opset 3 a tensor that may hold doubles.
std::vector<double> numbers_attr(OnnxNode& n, const std::string& name) {
  if (n.has_attr(name + "_as_tensor")) return doubles_attr(n, name + "_as_tensor");
  const std::vector<float> floats = n.attr(name, std::vector<float>());
  return {floats.begin(), floats.end()};
}

using NodeName = std::pair<int64_t, int64_t>;  // tree, node

Forest named_forest(OnnxNode& n, std::map<NodeName, int64_t>& places) {
  const std::vector<int64_t> trees = n.required_ints("nodes_treeids"), names = n.required_ints("nodes_nodeids"),
                             feature = n.required_ints("nodes_featureids"), yes = n.required_ints("nodes_truenodeids"),
                             no = n.required_ints("nodes_falsenodeids"),
                             missing = n.attr("nodes_missing_value_tracks_true", std::vector<int64_t>());
  const std::vector<std::string> modes = n.attr("nodes_modes", std::vector<std::string>());
  const std::vector<double> values = numbers_attr(n, "nodes_values");
  const size_t count = trees.size();
  require(names.size() == count && feature.size() == count && yes.size() == count && no.size() == count &&
              modes.size() == count && values.size() == count && (missing.empty() || missing.size() == count),
          "The attributes of the trees' nodes have different lengths.");
  constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  Forest forest;
  std::map<int64_t, int64_t> roots;
  for (size_t i = 0; i < count; ++i) {
    const auto known = std::find(std::begin(kModes), std::end(kModes), modes[i]);
    require(known != std::end(kModes) || modes[i] == "LEAF", "The mode '", modes[i],
            "' of a tree's node is not known.");
    const Mode mode = modes[i] == "LEAF" ? Mode::kLeaf : static_cast<Mode>(known - std::begin(kModes));
    const int64_t node = forest.add(mode, feature[i], values[i], !missing.empty() && missing[i] != 0);
    require(places.emplace(NodeName{trees[i], names[i]}, node).second, "Node ", names[i], " of tree ", trees[i],
            " is there twice.");
    roots.emplace(trees[i], node);  // the first node of a tree is its root
  }
  for (size_t i = 0; i < count; ++i) {
    if (forest.mode[i] == Mode::kLeaf) continue;
    const auto child = [&](int64_t name) {
      const auto it = places.find({trees[i], name});
      require(it != places.end(), "Tree ", trees[i], " has no node ", name, ".");
      return it->second;
    };
    forest.yes[i] = child(yes[i]);
    forest.no[i] = child(no[i]);
  }
  for (const auto& [tree, root] : roots) forest.roots.push_back(root);
  return forest;
}

// Lists prefix_treeids, prefix_nodeids, prefix_ids, prefix_weights: what leaves add.
struct LeafList {
  std::vector<int64_t> nodes, ids;
  std::vector<double> weights;
};

LeafList leaf_list(OnnxNode& n, const std::string& prefix, const std::map<NodeName, int64_t>& places) {
  const std::vector<int64_t> trees = n.required_ints(prefix + "_treeids"), names = n.required_ints(prefix + "_nodeids");
  LeafList list{{}, n.required_ints(prefix + "_ids"), numbers_attr(n, prefix + "_weights")};
  require(trees.size() == names.size() && trees.size() == list.ids.size() && trees.size() == list.weights.size(),
          "The attributes of the leaves have different lengths.");
  for (size_t i = 0; i < trees.size(); ++i) {
    const auto it = places.find({trees[i], names[i]});
    require(it != places.end(), "Tree ", trees[i], " has no node ", names[i], ".");
    list.nodes.push_back(it->second);
  }
  return list;
}

Built tree_ensemble_regressor(OnnxNode& n) {
  const Value x = feature_matrix(n, 0);
  std::map<NodeName, int64_t> places;
  const Forest forest = named_forest(n, places);
  const LeafList list = leaf_list(n, "target", places);
  const std::map<std::string, Aggregate> kinds{
      {"AVERAGE", Aggregate::kAverage}, {"SUM", Aggregate::kSum}, {"MIN", Aggregate::kMin}, {"MAX", Aggregate::kMax}};
  const auto how = kinds.find(n.attr("aggregate_function", "SUM"));
  require(how != kinds.end(), "The aggregate function '", n.attr("aggregate_function", "SUM"), "' is not known.");
  LeafTable leaves(forest, n.attr("n_targets", 1), identity_of(how->second, x.dtype()));
  std::vector<bool> touched(leaves.weights.size());
  for (size_t i = 0; i < list.ids.size(); ++i) {
    double& w = leaves.at(list.nodes[i], list.ids[i]);
    const auto cell = static_cast<size_t>(&w - leaves.weights.data());
    w = touched[cell] ? w + list.weights[i] : list.weights[i];
    touched[cell] = true;
  }
  Value y = aggregate(n, walk(n, forest, leaves, x), how->second);
  const std::vector<double> base = numbers_attr(n, "base_values");
  if (!base.empty()) y = y + n.constant(Tensor::from_doubles(x.dtype(), {static_cast<int64_t>(base.size())}, base));
  return cast_to(post_transform(n, y, n.attr("post_transform", "NONE")), DType::F32);
}

// Two classes and weights for one of them: its score decides, and is a probability where no weight is negative. What
// ONNX Runtime does where the standard is silent.
Built tree_ensemble_classifier(OnnxNode& n) {
  const Value x = feature_matrix(n, 0);
  std::map<NodeName, int64_t> places;
  const Forest forest = named_forest(n, places);
  const LeafList list = leaf_list(n, "class", places);
  const ClassLabels labels = class_labels(n, "classlabels_int64s", "classlabels_strings");
  require(labels.size() > 0 && !list.ids.empty(), "It has no classes.");
  const bool one_id = std::all_of(list.ids.begin(), list.ids.end(), [&](int64_t id) { return id == list.ids[0]; });
  const bool binary = labels.size() <= 2 && one_id;
  LeafTable leaves(forest, binary ? 1 : labels.size(), 0);
  for (size_t i = 0; i < list.ids.size(); ++i) leaves.at(list.nodes[i], binary ? 0 : list.ids[i]) += list.weights[i];
  Value scores = cast_to(aggregate(n, walk(n, forest, leaves, x), Aggregate::kSum), DType::F32);
  std::vector<double> base = numbers_attr(n, "base_values");
  if (binary && base.size() == 2) base = {base[list.ids[0] == 1 ? 1 : 0]};
  if (!base.empty())
    scores = scores + n.constant(Tensor::from_doubles(DType::F32, {static_cast<int64_t>(base.size())}, base));
  const std::string kind = n.attr("post_transform", "NONE");
  if (!binary) {
    const Value best = ops::argmax(scores, {.axis = 1, .keep_dim = false, .index_dtype = DType::I64});
    return std::vector<Item>{labels_of(n, labels, best), n.result(post_transform(n, scores, kind))};
  }
  const bool positive = std::all_of(list.weights.begin(), list.weights.end(), [](double w) { return w >= 0; });
  const Value best = squeeze(cast_to(ops::gt(scores, scalar_like(n, scores, positive ? 0.5 : 0)), DType::I64), {1});
  const Value minus = -scores;
  const Value other = positive && kind != "LOGISTIC" ? minus + scalar_like(n, scores, 1) : minus;
  const Value both = ops::concat(Values{other, scores}, {.axis = 1});
  const bool transformed = kind == "LOGISTIC" || kind == "PROBIT";
  return std::vector<Item>{labels_of(n, labels, best), n.result(transformed ? post_transform(n, both, kind) : both)};
}

}  // namespace

Rows trees_rows() {
  return {
      {"TreeEnsemble", 5, tree_ensemble},
      {"TreeEnsembleClassifier", 1, tree_ensemble_classifier},
      {"TreeEnsembleRegressor", 1, tree_ensemble_regressor},
  };
}

}  // namespace rlx::onnx
