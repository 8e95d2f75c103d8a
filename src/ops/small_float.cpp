#include "rlx/ops/small_float.h"

#include "ops/infer.h"

namespace rlx::ops {

static Types infer_encode(const InferCall& call) { return TensorType{same_as_float_input(call)[0].shape, DType::U8}; }

static Types infer_decode(const InferCall& call) {
  require_dtype(call.input(0), DType::U8, "Codes");
  const DType to = call.attrs<DecodeFloatAttrs>().to;
  require(is_float(to), "Result dtype (", to, ") is not a float type.");
  return TensorType{call.input(0).shape, to};
}

constinit const Op<EncodeFloatAttrs> encode_float{elementwise_unary(
    "encode_float", infer_encode,
    "The codes of a small float format as U8: nearest even, too large saturates, or becomes infinity or NaN.")};
constinit const Op<DecodeFloatAttrs> decode_float{
    elementwise_unary("decode_float", infer_decode, "The floats that codes of a small float format stand for.")};

}  // namespace rlx::ops
