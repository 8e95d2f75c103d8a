#include "graph_page.h"

#include <nlohmann/json.hpp>
#include <set>

#include "common.h"
#include "ir/text.h"

namespace rlx::cli {

namespace {

constexpr std::string_view kPage =
#include "graph_page.inc"  // graph_page.html as a string, made by CMake
    ;

// Everything the page knows, as JSON: graphs in one list, so that regions can be named by their index.
class PageData {
 public:
  size_t add(const Graph& graph) {
    const size_t index = graphs_.size();
    graphs_.push_back({});
    Json nodes = Json::array();
    for (const Node& node : graph.nodes()) nodes.push_back(node_json(graph, node));
    Json outputs = Json::array();
    for (const Output& o : graph.outputs()) {
      const ValuePlace place = graph.place(o.value);
      outputs.push_back({o.name, place.node, place.result});
    }
    graphs_[index] = {{"name", graph.name()}, {"nodes", std::move(nodes)}, {"outputs", std::move(outputs)}};
    return index;
  }

  Json take(const std::string& model, Json views) {
    return {{"model", model}, {"views", std::move(views)}, {"docs", std::move(docs_)}, {"graphs", std::move(graphs_)}};
  }

 private:
  // l: label, o: op, c: category, t: types of the results, i: operands as [node, result], a: attributes, f: where it
  // comes from, g: regions.
  Json node_json(const Graph& graph, const Node& node) {
    Json types = Json::array(), inputs = Json::array(), regions = Json::array();
    for (const Result& r : node.results) types.push_back(type_text(graph, r.type));
    for (const ValueId id : node.inputs) {
      const ValuePlace place = graph.place(id);
      inputs.push_back({place.node, place.result});
    }
    for (const GraphPtr& region : node.attrs.graphs()) regions.push_back(add(*region));
    Json out = {{"l", graph.label(node.results[0].id)},
                {"o", node.op->name},
                {"c", node.op->traits.leaf ? "Leaves" : std::string(node.op->category)},
                {"t", std::move(types)},
                {"i", std::move(inputs)},
                {"a", attributes(node)}};
    if (!node.origin.empty()) out["f"] = node.origin;
    if (!regions.empty()) out["g"] = std::move(regions);
    docs_[std::string(node.op->name)] = node.op->doc;
    return out;
  }

  static Json attributes(const Node& node) {
    constexpr size_t kLongest = 400;  // of an attribute's text
    Json out = Json::array();
    for (const Field& field : node.attrs.fields()) {
      if (std::holds_alternative<GraphPtr*>(field.ref)) continue;
      std::string text;
      if (const auto* tensor = std::get_if<Tensor*>(&field.ref); tensor != nullptr && (*tensor)->num_elements() > 16)
        text = str((*tensor)->type(), ", ", bytes_text(static_cast<int64_t>((*tensor)->bytes().size())));
      else
        text = print_field(field.ref);
      if (text.size() > kLongest) text = text.substr(0, kLongest) + " ...";
      out.push_back({field.name, text});
    }
    return out;
  }

  Json graphs_ = Json::array(), docs_ = Json::object();
};

}  // namespace

std::string graph_page(const std::string& model, const std::vector<GraphView>& views) {
  PageData data;
  Json list = Json::array();
  for (const GraphView& view : views) list.push_back({{"title", view.title}, {"graph", data.add(*view.graph)}});
  const std::string json = data.take(model, std::move(list)).dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::string_view kPlace = "@DATA@";
  const size_t at = kPage.find(kPlace);
  std::string out(kPage.substr(0, at));
  for (const char c : json) {  // nothing in it may end the script it stands in
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out.append(kPage.substr(at + kPlace.size()));
}

}  // namespace rlx::cli
