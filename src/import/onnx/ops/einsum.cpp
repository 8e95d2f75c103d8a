// Einsum, as contractions of pairs of operands.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "import/onnx/ops.h"
#include "import/onnx/ops/compose.h"

namespace rlx::onnx {

namespace {

// An index of the equation: a letter, or a number below 0 for an axis of the ellipsis, -1 being the last.
using Labels = std::vector<int>;

struct Term {
  Labels before, after;
  bool ellipsis = false;
};

Term parse_term(std::string_view text, std::string_view equation) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "...") {
      require(!term.ellipsis, "The equation '", equation, "' has two ellipses in one term.");
      term.ellipsis = true;
      i += 2;
    } else {
      require(std::isalpha(static_cast<unsigned char>(text[i])) != 0, "The equation '", equation, "' has '", text[i],
              "' where a letter is expected.");
      (term.ellipsis ? term.after : term.before).push_back(text[i]);
    }
  }
  return term;
}

// The term's indices for an operand with `broadcast` axes under the ellipsis.
Labels labels_of(const Term& term, int64_t broadcast) {
  Labels labels = term.before;
  for (int64_t i = broadcast; i > 0 && term.ellipsis; --i) labels.push_back(static_cast<int>(-i));
  labels.insert(labels.end(), term.after.begin(), term.after.end());
  return labels;
}

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int64_t place(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

struct Operand {
  Value value;
  Labels labels;
};

// The diagonal of two axes of one index: both at the front as one axis, of which every (d + 1)-th element is taken.
Operand take_diagonals(OnnxNode& n, Operand x) {
  for (size_t j = 1; j < x.labels.size(); ++j) {
    const auto i = static_cast<size_t>(place(x.labels, x.labels[j]));
    if (i == j) continue;
    std::vector<int64_t> perm{static_cast<int64_t>(i), static_cast<int64_t>(j)};
    Labels labels{x.labels[j]};
    for (size_t k = 0; k < x.labels.size(); ++k)
      if (k != i && k != j) {
        perm.push_back(static_cast<int64_t>(k));
        labels.push_back(x.labels[k]);
      }
    const Value front = ops::transpose(x.value, {.perm = perm});
    const Dim d = front.shape()[0];
    require(d == front.shape()[1], "An index stands for axes of sizes ", d, " and ", front.shape()[1], ".");
    std::vector<Dim> flat{n.symbols().mul(d, d)};
    flat.insert(flat.end(), front.shape().begin() + 2, front.shape().end());
    const Value step = size_as_scalar(n, n.symbols().add(d, 1));
    const Value at = count_up(n, d) * step;
    x = take_diagonals(n, {ops::gather(reshape_to(front, flat), at, {.axis = 0}), labels});
    break;
  }
  return x;
}

Operand sum_out(const Operand& x, const std::set<int>& wanted) {
  std::vector<int64_t> axes;
  Labels kept;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (wanted.contains(x.labels[i])) {
      kept.push_back(x.labels[i]);
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  return axes.empty() ? x : Operand{ops::reduce_sum(x.value, {.axes = axes, .keep_dim = false}), kept};
}

Operand in_order(const Operand& x, const Labels& order) {
  if (x.labels == order) return x;
  std::vector<int64_t> perm;
  for (const int label : order) perm.push_back(place(x.labels, label));
  return {ops::transpose(x.value, {.perm = perm}), order};
}

// The operand with size-1 axes for the indices that it lacks.
Value spread(const Operand& x, const Labels& all) {
  Labels own;
  std::vector<int64_t> missing;
  for (size_t i = 0; i < all.size(); ++i) {
    if (contains(x.labels, all[i])) {
      own.push_back(all[i]);
    } else {
      missing.push_back(static_cast<int64_t>(i));
    }
  }
  const Value moved = in_order(x, own).value;
  return missing.empty() ? moved : unsqueeze(moved, missing);
}

Operand contract(const Operand& a, const Operand& b, const std::set<int>& wanted) {
  ops::DotGeneralAttrs attrs;
  Labels batch, free;
  for (const int label : a.labels) {
    if (!contains(b.labels, label)) {
      free.push_back(label);
    } else if (wanted.contains(label)) {
      batch.push_back(label);
      attrs.lhs_batch.push_back(place(a.labels, label));
      attrs.rhs_batch.push_back(place(b.labels, label));
    } else {
      attrs.lhs_contracting.push_back(place(a.labels, label));
      attrs.rhs_contracting.push_back(place(b.labels, label));
    }
  }
  for (const int label : b.labels)
    if (!contains(a.labels, label)) free.push_back(label);
  Labels result = batch;
  result.insert(result.end(), free.begin(), free.end());
  if (!attrs.lhs_contracting.empty()) return {ops::dot_general(a.value, b.value, attrs), result};
  const Value left = spread(a, result), right = spread(b, result);
  return {left * right, result};
}

struct Equation {
  std::vector<Term> terms;
  Term output;
};

Equation parse_equation(const std::string& text) {
  std::string equation;
  for (const char c : text)
    if (c != ' ') equation += c;
  const size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  Equation parsed;
  for (size_t begin = 0;;) {
    const size_t comma = left.find(',', begin);
    parsed.terms.push_back(parse_term(left.substr(begin, comma - begin), text));
    if (comma == left.npos) break;
    begin = comma + 1;
  }
  if (arrow != equation.npos) {
    parsed.output = parse_term(equation.substr(arrow + 2), text);
    return parsed;
  }
  // Without a right side: the ellipsis, then every letter that stands once, in alphabetical order.
  std::map<int, int> uses;
  for (const Term& term : parsed.terms) {
    parsed.output.ellipsis |= term.ellipsis;
    for (const Labels* labels : {&term.before, &term.after})
      for (const int label : *labels) ++uses[label];
  }
  for (const auto& [label, count] : uses)
    if (count == 1) parsed.output.after.push_back(label);
  return parsed;
}

Built einsum(OnnxNode& n) {
  const std::string text = n.attr("equation", "");
  const Equation equation = parse_equation(text);
  require(static_cast<int64_t>(equation.terms.size()) == n.num_inputs(), "The equation '", text, "' has ",
          equation.terms.size(), " terms for ", n.num_inputs(), " operands.");
  int64_t broadcast = 0;  // axes of the longest ellipsis
  std::vector<Operand> operands;
  for (int64_t i = 0; i < n.num_inputs(); ++i) {
    const Term& term = equation.terms[static_cast<size_t>(i)];
    const Value x = n.input(i);
    const int64_t named = static_cast<int64_t>(term.before.size() + term.after.size());
    const int64_t rest = x.shape().rank() - named;
    require(rest == 0 || (rest > 0 && term.ellipsis), "Operand ", i, " (", x.type(), ") does not have the ", named,
            " axes that the equation '", text, "' names.");
    broadcast = std::max(broadcast, rest);
    operands.push_back({x, labels_of(term, rest)});
  }
  const Labels output = labels_of(equation.output, broadcast);
  // An axis of size 1 broadcasts: it is left out where another operand has more.
  std::set<int> wide;
  for (const Operand& x : operands)
    for (size_t i = 0; i < x.labels.size(); ++i)
      if (!x.value.shape()[static_cast<int64_t>(i)].is(1)) wide.insert(x.labels[i]);
  for (Operand& x : operands) {
    std::vector<int64_t> axes;
    Labels kept;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (x.value.shape()[static_cast<int64_t>(i)].is(1) && wide.contains(x.labels[i])) {
        axes.push_back(static_cast<int64_t>(i));
      } else {
        kept.push_back(x.labels[i]);
      }
    }
    if (!axes.empty()) x = {squeeze(x.value, axes), kept};
    x = take_diagonals(n, x);
  }
  Operand all = operands[0];
  for (size_t i = 0; i < operands.size(); ++i) {
    std::set<int> wanted(output.begin(), output.end());
    for (size_t k = i + 1; k < operands.size(); ++k)
      wanted.insert(operands[k].labels.begin(), operands[k].labels.end());
    if (i == 0) {
      all = sum_out(all, wanted);
      continue;
    }
    std::set<int> left = wanted;
    left.insert(all.labels.begin(), all.labels.end());
    all = contract(all, sum_out(operands[i], left), wanted);
    all = sum_out(all, wanted);
  }
  for (const int label : output)
    require(contains(all.labels, label), "The equation '", text, "' has an index on the right that no operand has.");
  return in_order(all, output).value;
}

}  // namespace

Rows einsum_rows() { return {{"Einsum", 12, einsum}}; }

}  // namespace rlx::onnx
