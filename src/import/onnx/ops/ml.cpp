// Ops of ai.onnx.ml on tensors: encoders, scalers and linear models.
#include "import/onnx/ops/ml.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"
#include "import/onnx/ops/strings.h"
#include "rlx/log.h"

namespace rlx::onnx {

Value feature_matrix(OnnxNode& n, int64_t i) {
  const Value x = n.input(i);
  const Value f = is_float(x.dtype()) ? x : cast_to(x, DType::F32);
  if (f.shape().rank() == 1) return unsqueeze(f, {0});
  require(f.shape().rank() == 2, "A matrix is expected, not a tensor of rank ", f.shape().rank(), ".");
  return f;
}

namespace {

// The normal distribution's quantile: sqrt(2) erfinv(2 p - 1) by Winitzki's formula, as other runtimes compute it.
Value probit(OnnxNode& n, const Value& p) {
  const auto c = [&](double v) { return scalar_like(n, p, v); };
  const Value x = p * c(2) - c(1);
  const Value log = ops::log((c(1) - x) * (c(1) + x));
  const Value v = log * c(0.5) + c(2 / (M_PI * 0.147));
  const Value root = ops::sqrt(ops::sqrt(v * v - log * c(1 / 0.147)) - v) * c(1.41421356);
  return ops::where(ops::lt(x, c(0)), -root, root);
}

// Softmax over the elements that are not 0; those stay 0.
Value softmax_zero(OnnxNode& n, const Value& x) {
  const Value top = ops::reduce_max(x, {.axes = {-1}, .keep_dim = true});
  const Value counts = ops::gt(ops::abs(x), scalar_like(n, x, 1e-7));
  const Value raised = ops::where(counts, ops::exp(x - top), x * ops::exp(-top));
  const Value sum = ops::reduce_sum(raised, {.axes = {-1}, .keep_dim = true});
  const Value none = ops::eq(sum, scalar_like(n, x, 0));
  return ops::where(none, scalar_like(n, x, 0.5), raised / ops::where(none, scalar_like(n, x, 1), sum));
}

}  // namespace

Value post_transform(OnnxNode& n, const Value& scores, const std::string& kind) {
  if (kind == "NONE") return scores;
  if (kind == "SOFTMAX") return ops::softmax(scores, {.axis = -1});
  if (kind == "LOGISTIC") return ops::sigmoid(scores);
  if (kind == "SOFTMAX_ZERO") return softmax_zero(n, scores);
  if (kind == "PROBIT") return probit(n, scores);
  fail(ErrorKind::kInvalid, str("The post transform '", kind, "' is not known."));
}

ClassLabels class_labels(OnnxNode& n, std::string_view ints, std::string_view strings) {
  return {n.attr(ints, std::vector<int64_t>()), n.attr(strings, std::vector<std::string>())};
}

Item labels_of(OnnxNode& n, const ClassLabels& labels, const Value& classes) {
  if (labels.size() == 0) return n.result(classes);
  if (labels.strings.empty()) return n.result(ops::gather(n.ints_constant(labels.ints), classes, {.axis = 0}));
  const Tensor known = n.importer().known(classes.id());
  Strings names{known.sizes(), {}};
  for (const int64_t c : known.values<int64_t>()) {
    require(c >= 0 && c < static_cast<int64_t>(labels.strings.size()), "There is no label for class ", c, ".");
    names.values.push_back(labels.strings[static_cast<size_t>(c)]);
  }
  return strings_item(n, std::move(names));
}

namespace {

Built array_feature_extractor(OnnxNode& n) {
  const Value indices = reshape_to(n.input(1), {n.symbols().product(n.input(1).shape().dims())});
  Value x = n.input(0);
  if (x.shape().rank() == 1) x = unsqueeze(x, {0});  // a row
  return n.like(ops::gather(x, indices, {.axis = -1}), 0);
}

Built binarizer(OnnxNode& n) {
  const Value x = n.input(0);
  const Value above = ops::gt(x, scalar_like(n, x, n.attr("threshold", 0.0f)));
  return cast_to(above, x.dtype());
}

// ---- LabelEncoder

// A list of keys or values: numbers, or strings.
struct KeyList {
  ElemType elem = ElemType::kUndefined;
  Tensor numbers;
  std::vector<std::string> strings;
  bool given() const { return elem != ElemType::kUndefined; }
  bool is_string() const { return elem == ElemType::kString; }
  int64_t size() const { return is_string() ? static_cast<int64_t>(strings.size()) : numbers.num_elements(); }
};

KeyList key_list(HostValue value) {
  if (value.kind == HostValue::Kind::kStrings) return {ElemType::kString, {}, value.strings.values};
  return {value.elem, value.tensor.reshaped({value.tensor.num_elements()}), {}};
}

KeyList key_list(OnnxNode& n, const std::string& prefix) {
  if (n.has_attr(prefix + "_tensor")) return key_list(n.tensor_attr(prefix + "_tensor"));
  if (n.has_attr(prefix + "_strings"))
    return {ElemType::kString, {}, n.attr(prefix + "_strings", std::vector<std::string>())};
  if (n.has_attr(prefix + "_int64s")) {
    const std::vector<int64_t> ints = n.required_ints(prefix + "_int64s");
    return {ElemType::kInt64, Tensor::i64({static_cast<int64_t>(ints.size())}, ints), {}};
  }
  if (n.has_attr(prefix + "_floats")) {
    const std::vector<float> floats = n.attr(prefix + "_floats", std::vector<float>());
    return {ElemType::kFloat, Tensor::f32({static_cast<int64_t>(floats.size())}, floats), {}};
  }
  return {};
}

// The value of keys that are not listed.
KeyList default_of(OnnxNode& n, const KeyList& values) {
  if (n.has_attr("default_tensor")) return key_list(n.tensor_attr("default_tensor"));
  if (values.is_string()) return {ElemType::kString, {}, {n.attr("default_string", "_Unused")}};
  if (is_int(values.numbers.dtype())) {
    const Tensor t = Tensor::i64({1}, {n.attr("default_int64", -1)});
    return {values.elem, t.cast(values.numbers.dtype()), {}};
  }
  const double otherwise = n.attr("default_float", -0.0f);
  return {values.elem, Tensor::from_doubles(values.numbers.dtype(), {1}, {{otherwise}}), {}};
}

// Which key each element is; keys.size() where it is none. Strings are looked up, numbers compared in the graph.
Value find_keys(OnnxNode& n, const KeyList& keys) {
  const int64_t count = keys.size();
  if (keys.is_string()) {
    std::map<std::string, int64_t> place;
    for (int64_t i = 0; i < count; ++i) place.emplace(keys.strings[static_cast<size_t>(i)], i);
    const Strings& x = strings_of(n, 0);
    std::vector<int64_t> found;
    for (const std::string& s : x.values) {
      const auto it = place.find(s);
      found.push_back(it == place.end() ? count : it->second);
    }
    return n.constant(Tensor::i64(x.sizes, found));
  }
  const Value x = n.input(0);
  const Value list = n.constant(keys.numbers.cast(x.dtype()));
  const Value wide = unsqueeze(x, {-1});
  Value same = ops::eq(wide, list);
  if (is_float(x.dtype())) {  // a key that is NaN finds NaNs
    const Value both = ops::where(ops::ne(wide, wide), ops::ne(list, list), n.scalar(0, DType::Bool));
    same = ops::where(same, n.scalar(1, DType::Bool), both);
  }
  const Value number = count_up(n, count + 1);
  const Value here = ops::narrow(number, {.axis = 0, .start = 0, .len = count});
  const Value places = ops::where(same, here, n.scalar(static_cast<double>(count), DType::I64));
  return ops::reduce_min(places, {.axes = {-1}, .keep_dim = false});
}

Built look_up(OnnxNode& n, const KeyList& keys, const KeyList& values, const KeyList& otherwise) {
  require(keys.given() && values.given() && keys.size() == values.size() && keys.size() > 0, "There are ", keys.size(),
          " keys for ", values.size(), " values.");
  require(otherwise.is_string() == values.is_string() && otherwise.size() == 1,
          "The default is not one value of the type of the others.");
  const Value found = find_keys(n, keys);
  if (!values.is_string()) {
    const Value table = ops::concat(
        Values{n.constant(values.numbers), n.constant(otherwise.numbers.cast(values.numbers.dtype()))}, {.axis = 0});
    return n.result(ops::gather(table, found, {.axis = 0}), values.elem);
  }
  const Tensor known = n.importer().known(found.id());
  Strings names{known.sizes(), {}};
  for (const int64_t i : known.values<int64_t>())
    names.values.push_back(i == values.size() ? otherwise.strings[0] : values.strings[static_cast<size_t>(i)]);
  return strings_item(n, std::move(names));
}

Built label_encoder(OnnxNode& n) {
  const KeyList values = key_list(n, "values");
  return look_up(n, key_list(n, "keys"), values, default_of(n, values));
}

// Opset 1: strings to their places in a list, or places to strings.
Built label_encoder_1(OnnxNode& n) {
  KeyList names{ElemType::kString, {}, n.attr("classes_strings", std::vector<std::string>())};
  std::vector<int64_t> places;
  for (int64_t i = 0; i < names.size(); ++i) places.push_back(i);
  KeyList numbers{ElemType::kInt64, Tensor::i64({names.size()}, places), {}};
  if (is_strings(n, 0)) return look_up(n, names, numbers, default_of(n, numbers));
  return look_up(n, numbers, names, default_of(n, names));
}

// One column per category; a value that is none of them gives zeros, or is an error when `zeros` is 0 and it is known.
Built one_hot_encoder(OnnxNode& n) {
  const KeyList keys = key_list(n, "cats");
  require(keys.given() && keys.size() > 0, "It has no categories.");
  const Value found = unsqueeze(find_keys(n, keys), {-1});
  if (!n.attr("zeros", true))
    if (const std::optional<Tensor> known = n.importer().try_known(found.id()))
      for (const int64_t i : known->values<int64_t>()) require(i < keys.size(), "A value is none of the categories.");
  return cast_to(ops::eq(found, count_up(n, keys.size())), DType::F32);
}

// ---- numbers

Value float_list(OnnxNode& n, std::string_view name, DType dtype) {
  const std::vector<float> list = n.attr(name, std::vector<float>());
  return cast_to(n.constant(Tensor::f32({static_cast<int64_t>(list.size())}, list)), dtype);
}

Built scaler(OnnxNode& n) {
  Value x = n.input(0);
  if (!is_float(x.dtype())) x = cast_to(x, DType::F32);
  if (n.has_attr("offset")) x = x - float_list(n, "offset", x.dtype());
  if (n.has_attr("scale")) x = x * float_list(n, "scale", x.dtype());
  return cast_to(x, DType::F32);
}

Built normalizer(OnnxNode& n) {
  const Value input = n.input(0);
  const Value x = input.dtype() == DType::F64 ? input : cast_to(input, DType::F32);
  const std::string norm = n.attr("norm", "MAX");
  const std::vector<int64_t> axis{-1};
  const auto by = [&](const Value& divisor) {
    const Value zero = scalar_like(n, x, 0);
    return cast_to(ops::where(ops::eq(divisor, zero), x, x / divisor), DType::F32);
  };
  if (norm == "MAX") return by(ops::reduce_max(x, {.axes = axis, .keep_dim = true}));
  if (norm == "L1") return by(ops::reduce_sum(ops::abs(x), {.axes = axis, .keep_dim = true}));
  require(norm == "L2", "The norm '", norm, "' is not known.");
  return by(ops::sqrt(ops::reduce_sum(x * x, {.axes = axis, .keep_dim = true})));
}

Built imputer(OnnxNode& n) {
  const Value x = n.input(0);
  if (is_int(x.dtype())) {
    const Value values = n.ints_constant(n.required_ints("imputed_value_int64s"));
    const Value missing = ops::eq(x, n.constant(Tensor::i64({}, {n.attr("replaced_value_int64", 0)}).cast(x.dtype())));
    return ops::where(missing, cast_to(values, x.dtype()), x);
  }
  const float replaced = n.attr("replaced_value_float", 0.0f);
  const Value values = float_list(n, "imputed_value_floats", x.dtype());
  const Value missing = std::isnan(replaced) ? ops::ne(x, x) : ops::eq(x, scalar_like(n, x, replaced));
  return ops::where(missing, values, x);
}

Built feature_vectorizer(OnnxNode& n) {
  const std::vector<int64_t> widths = n.attr("inputdimensions", std::vector<int64_t>());
  Values parts;
  for (int64_t i = 0; i < n.num_inputs(); ++i) {
    Value x = cast_to(n.input(i), DType::F32);
    if (x.shape().rank() == 1) x = unsqueeze(x, {1});
    require(x.shape().rank() == 2, "Input ", i, " has rank ", x.shape().rank(), "; a matrix is expected.");
    if (static_cast<size_t>(i) < widths.size()) {
      const int64_t want = widths[static_cast<size_t>(i)], have = x.shape()[1].value();
      require(want >= 0, "The width ", want, " is negative.");
      x = want < have ? ops::narrow(x, {.axis = 1, .start = 0, .len = want}) : pad_axis(n, x, 1, 0, want - have);
    }
    parts.push_back(x);
  }
  return parts.size() == 1 ? parts[0] : ops::concat(parts, {.axis = 1});
}

// x times the rows of coefficients, plus intercepts.
Value linear_scores(OnnxNode& n, const Value& x, int64_t rows) {
  const Value list = float_list(n, "coefficients", x.dtype());
  const int64_t count = list.shape()[0].value();
  require(rows > 0 && count % rows == 0, "There are ", count, " coefficients for ", rows, " results.");
  const Value weights = reshape_to(list, {rows, count / rows});
  const Value scores = ops::matmul(x, swap_last_two(weights));
  return n.has_attr("intercepts") ? scores + float_list(n, "intercepts", x.dtype()) : scores;
}

Built linear_regressor(OnnxNode& n) {
  const Value x = cast_to(feature_matrix(n, 0), DType::F32);
  return post_transform(n, linear_scores(n, x, n.attr("targets", 1)), n.attr("post_transform", "NONE"));
}

Built linear_classifier(OnnxNode& n) {
  const Value x = cast_to(feature_matrix(n, 0), DType::F32);
  const ClassLabels labels = class_labels(n, "classlabels_ints", "classlabels_strings");
  const std::vector<float> intercepts = n.attr("intercepts", std::vector<float>());
  const int64_t rows =
      intercepts.empty() ? std::max<int64_t>(labels.size(), 1) : static_cast<int64_t>(intercepts.size());
  const std::string kind = n.attr("post_transform", "NONE");
  const Value scores = linear_scores(n, x, rows);
  if (rows > 1) {
    const Value best = ops::argmax(scores, {.axis = 1, .keep_dim = false, .index_dtype = DType::I64});
    return std::vector<Item>{labels_of(n, labels, best), n.result(post_transform(n, scores, kind))};
  }
  // One score decides between two classes.
  const Value best = squeeze(cast_to(ops::gt(scores, scalar_like(n, scores, 0)), DType::I64), {1});
  const Value positive = post_transform(n, scores, kind == "SOFTMAX" || kind == "SOFTMAX_ZERO" ? "NONE" : kind);
  if (labels.size() != 2) return std::vector<Item>{n.result(best), n.result(positive)};
  const Value negative = scalar_like(n, positive, 1) - positive;
  return std::vector<Item>{labels_of(n, labels, best), n.result(ops::concat(Values{negative, positive}, {.axis = 1}))};
}

// A list of maps from labels to probabilities: the probabilities, in the labels' order, are what the tensor holds.
Built zip_map(OnnxNode& n) {
  log(LogLevel::kWarning, str(n.label(), " makes maps of probabilities; rlx gives the tensor of probabilities."));
  return n.item(0);
}

}  // namespace

Rows ml_rows() {
  return {
      {"ArrayFeatureExtractor", 1, array_feature_extractor},
      {"Binarizer", 1, binarizer},
      {"FeatureVectorizer", 1, feature_vectorizer},
      {"Imputer", 1, imputer},
      {"LabelEncoder", 1, label_encoder_1},
      {"LabelEncoder", 2, label_encoder},
      {"LinearClassifier", 1, linear_classifier},
      {"LinearRegressor", 1, linear_regressor},
      {"Normalizer", 1, normalizer},
      {"OneHotEncoder", 1, one_hot_encoder},
      {"Scaler", 1, scaler},
      {"ZipMap", 1, zip_map},
  };
}

}  // namespace rlx::onnx
