#include "import/onnx/proto.h"

#include "import/onnx/protobuf.h"
#include "rlx/error.h"

namespace rlx::onnx {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr int kMaxDepth = 100;  // of graphs in attributes, of types and of test data; real models reach five

std::string_view text(pbf_reader& r) {
  const protozero::data_view view = r.get_view();
  return {view.data(), view.size()};
}

// Writers pack numbers or do not; both are valid.
void read_ints(pbf_reader& r, std::vector<int64_t>& out) {
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    for (const int64_t i : r.get_packed_int64()) out.push_back(i);
  } else {
    out.push_back(r.get_int64());
  }
}

void read_floats(pbf_reader& r, std::vector<float>& out) {
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    for (const float f : r.get_packed_float()) out.push_back(f);
  } else {
    out.push_back(r.get_float());
  }
}

void check_depth(int depth) {
  require(depth < kMaxDepth, "Graphs, types or values nest more than ", kMaxDepth, " deep.");
}

Entry read_entry(pbf_reader r) {
  Entry e;
  while (r.next()) switch (r.tag()) {
      case 1: e.first = text(r); break;
      case 2: e.second = text(r); break;
      default: r.skip();
    }
  return e;
}

TensorProto read_tensor(std::string_view message) {
  TensorProto t;
  t.message = message;
  pbf_reader r(message.data(), message.size());
  while (r.next()) switch (r.tag()) {
      case 1: read_ints(r, t.dims); break;
      case 2: t.elem = static_cast<ElemType>(r.get_int32()); break;
      case 8: t.name = text(r); break;
      case 13: t.external.push_back(read_entry(r.get_message())); break;
      case 14: t.is_external = r.get_int32() == 1; break;
      default: r.skip();
    }
  return t;
}

std::vector<DimProto> read_shape(pbf_reader r) {
  std::vector<DimProto> dims;
  while (r.next()) {
    if (r.tag() != 1) {
      r.skip();
      continue;
    }
    DimProto dim;
    pbf_reader d = r.get_message();
    while (d.next()) switch (d.tag()) {
        case 1: dim.value = d.get_int64(); break;
        case 2: dim.param = text(d); break;
        default: d.skip();
      }
    dims.push_back(dim);
  }
  return dims;
}

TypeProto read_type(pbf_reader r, int depth) {
  check_depth(depth);
  TypeProto type;
  while (r.next()) {
    const auto tag = r.tag();
    if (tag == 1 || tag == 8) {
      type.kind = tag == 1 ? TypeProto::Kind::kTensor : TypeProto::Kind::kOther;
      pbf_reader t = r.get_message();
      while (t.next()) switch (t.tag()) {
          case 1: type.elem = static_cast<ElemType>(t.get_int32()); break;
          case 2: type.shape = read_shape(t.get_message()); break;
          default: t.skip();
        }
    } else if (tag == 4 || tag == 5 || tag == 9) {
      type.kind = tag == 4 ? TypeProto::Kind::kSequence : tag == 5 ? TypeProto::Kind::kMap : TypeProto::Kind::kOptional;
      pbf_reader t = r.get_message();
      while (t.next()) {
        if (t.tag() == (tag == 5 ? 2u : 1u))
          type.inner = std::make_shared<TypeProto>(read_type(t.get_message(), depth + 1));
        else if (tag == 5 && t.tag() == 1)
          type.elem = static_cast<ElemType>(t.get_int32());
        else
          t.skip();
      }
    } else {
      if (tag == 7) type.kind = TypeProto::Kind::kOther;
      r.skip();
    }
  }
  return type;
}

ValueInfo read_value_info(pbf_reader r) {
  ValueInfo info;
  while (r.next()) switch (r.tag()) {
      case 1: info.name = text(r); break;
      case 2: info.type = read_type(r.get_message(), 0); break;
      default: r.skip();
    }
  return info;
}

GraphProto read_graph(pbf_reader r, int depth);

AttributeProto read_attribute(pbf_reader r, int depth) {
  AttributeProto a;
  while (r.next()) switch (r.tag()) {
      case 1: a.name = text(r); break;
      case 2: a.f = r.get_float(); break;
      case 3: a.i = r.get_int64(); break;
      case 4: a.s = text(r); break;
      case 5:
      case 10: a.tensors.push_back(read_tensor(text(r))); break;
      case 6:
      case 11: a.graphs.push_back(std::make_shared<GraphProto>(read_graph(r.get_message(), depth + 1))); break;
      case 7: read_floats(r, a.floats); break;
      case 8: read_ints(r, a.ints); break;
      case 9: a.strings.push_back(text(r)); break;
      case 14: a.type_proto = read_type(r.get_message(), 0); break;
      case 20: a.type = static_cast<AttributeProto::Type>(r.get_int32()); break;
      case 21: a.ref_name = text(r); break;
      default: r.skip();
    }
  return a;
}

NodeProto read_node(pbf_reader r, int depth) {
  NodeProto n;
  while (r.next()) switch (r.tag()) {
      case 1: n.inputs.push_back(text(r)); break;
      case 2: n.outputs.push_back(text(r)); break;
      case 3: n.name = text(r); break;
      case 4: n.op_type = text(r); break;
      case 5: n.attributes.push_back(read_attribute(r.get_message(), depth)); break;
      case 7: n.domain = text(r); break;
      case 8: n.overload = text(r); break;
      default: r.skip();
    }
  if (n.domain == "ai.onnx") n.domain = "";
  return n;
}

GraphProto read_graph(pbf_reader r, int depth) {
  check_depth(depth);
  GraphProto g;
  while (r.next()) switch (r.tag()) {
      case 1: g.nodes.push_back(read_node(r.get_message(), depth)); break;
      case 2: g.name = text(r); break;
      case 5: g.initializers.push_back(read_tensor(text(r))); break;
      case 11: g.inputs.push_back(read_value_info(r.get_message())); break;
      case 12: g.outputs.push_back(read_value_info(r.get_message())); break;
      case 13: g.value_infos.push_back(read_value_info(r.get_message())); break;
      case 15:
        g.has_sparse_initializers = true;
        r.skip();
        break;
      default: r.skip();
    }
  return g;
}

OpsetId read_opset(pbf_reader r) {
  OpsetId id;
  while (r.next()) switch (r.tag()) {
      case 1: id.domain = text(r); break;
      case 2: id.version = r.get_int64(); break;
      default: r.skip();
    }
  if (id.domain == "ai.onnx") id.domain = "";
  return id;
}

FunctionProto read_function(pbf_reader r) {
  FunctionProto f;
  while (r.next()) switch (r.tag()) {
      case 1: f.name = text(r); break;
      case 4: f.inputs.push_back(text(r)); break;
      case 5: f.outputs.push_back(text(r)); break;
      case 6: f.attributes.push_back(text(r)); break;
      case 7: f.nodes.push_back(read_node(r.get_message(), 0)); break;
      case 9: f.opsets.push_back(read_opset(r.get_message())); break;
      case 10: f.domain = text(r); break;
      case 11: f.default_attributes.push_back(read_attribute(r.get_message(), 0)); break;
      case 13: f.overload = text(r); break;
      default: r.skip();
    }
  if (f.domain == "ai.onnx") f.domain = "";
  return f;
}

DataProto read_data(pbf_reader r, std::string_view message, const TypeProto& type, int depth) {
  check_depth(depth);
  DataProto data;
  if (type.kind == TypeProto::Kind::kSequence || type.kind == TypeProto::Kind::kOptional) {
    const bool sequence = type.kind == TypeProto::Kind::kSequence;
    static const TypeProto none;
    const TypeProto& inner = type.inner ? *type.inner : none;
    data.present = sequence;
    while (r.next()) {
      if (r.tag() == 3) {  // tensor_values, tensor_value
        data.tensors.push_back(read_tensor(text(r)));
        data.present = true;
      } else if (r.tag() >= 5 && r.tag() <= 7) {
        const std::string_view item = text(r);
        data.items.push_back(read_data(pbf_reader(item.data(), item.size()), item, inner, depth + 1));
        data.present = true;
      } else {
        r.skip();
      }
    }
  } else {
    data.tensors.push_back(read_tensor(message));
  }
  return data;
}

// Whatever protozero finds wrong becomes our Error.
template <class Read>
auto guarded(Read read) {
  try {
    return read();
  } catch (const protozero::exception& e) {
    fail(ErrorKind::kInvalid, str("The bytes are not a valid protobuf message (", e.what(), ")."));
  }
}

}  // namespace

ModelProto parse_model(std::string_view bytes) {
  return guarded([&] {
    ModelProto m;
    pbf_reader r(bytes.data(), bytes.size());
    while (r.next()) switch (r.tag()) {
        case 1: m.ir_version = r.get_int64(); break;
        case 2: m.producer = text(r); break;
        case 7: m.graph = read_graph(r.get_message(), 0); break;
        case 8: m.opsets.push_back(read_opset(r.get_message())); break;
        case 25: m.functions.push_back(read_function(r.get_message())); break;
        default: r.skip();
      }
    return m;
  });
}

TensorProto parse_tensor(std::string_view bytes) {
  return guarded([&] { return read_tensor(bytes); });
}

DataProto parse_data(std::string_view bytes, const TypeProto& type) {
  return guarded([&] { return read_data(pbf_reader(bytes.data(), bytes.size()), bytes, type, 0); });
}

}  // namespace rlx::onnx
