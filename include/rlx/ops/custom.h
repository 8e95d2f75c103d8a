#pragma once

#include "rlx/graph.h"

namespace rlx::ops {

struct CustomAttrs {
  std::string name;  // as registered: rlx/custom_op.h
  int64_t num_inputs = 0;
  Bytes attrs;  // what they mean is the op's own business
  // The packed form: the type of the one result is given here, and no type rule is asked.
  std::optional<DType> out_dtype;
  std::vector<Dim> out_shape;
  static constexpr auto fields =
      std::tuple{field("name", &CustomAttrs::name), field("num_inputs", &CustomAttrs::num_inputs),
                 field("attrs", &CustomAttrs::attrs), field("out_dtype", &CustomAttrs::out_dtype),
                 field("out_shape", &CustomAttrs::out_shape)};
};
// An op whose type rule and kernels come from a registry; rlx::custom_op builds it.
extern const Op<CustomAttrs> custom;

}  // namespace rlx::ops
