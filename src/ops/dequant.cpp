#include "rlx/ops/dequant.h"

#include "ops/infer.h"

namespace rlx::ops {

namespace {

// Packed weights are addressed in bytes, so their sizes are numbers.
int64_t known(const Dim& dim, std::string_view what) {
  require(dim.is_static(), what, " (", dim, ") is not known.");
  return dim.value();
}

int64_t byte_count(const TensorType& packed) {
  require_dtype(packed, DType::U8, "Packed weight");
  const std::optional<int64_t> bytes = packed.shape.try_elements();
  require(bytes.has_value(), "Packed weight shape (", packed.shape, ") is not known.");
  return *bytes;
}

void require_gguf(Scheme scheme) { require(is_gguf(scheme), "Scheme (", scheme, ") is not a GGUF scheme."); }

// Bytes of one row of K elements.
int64_t row_bytes(Scheme scheme, int64_t k) {
  require(k > 0, "Contraction size (", k, ") of ", scheme, " is not positive.");
  return weight_bytes(scheme, k, 1);
}

void require_scales(const TensorType& scales, DType dtype, int64_t blocks, int64_t n) {
  require_dtype(scales, dtype, "Scale");
  require_shape(scales, {blocks, n}, "Scale");
}

// N of a side-tensor weight, all operands checked.
int64_t infer_side(const InferCall& call, int64_t k) {
  const DequantMatmulAttrs& attrs = call.attrs<DequantMatmulAttrs>();
  const TensorType &w = call.input(1), &scale = call.input(2), &zero = call.input(3);
  const bool is_int8 = attrs.scheme == Scheme::kInt8 || attrs.scheme == Scheme::kInt8Asym;
  require(w.dtype == DType::U8 || (is_int8 && w.dtype == DType::I8), "Weight dtype (", w.dtype, ") is not u8.");

  int64_t n = 0;
  if (info(attrs.scheme).code_bits == 8) {
    require_rank(w, 2, "Weight");
    require_same_dim(w.dim(0), k, "Contraction sizes of weight and x");
    n = known(w.dim(1), "Weight size N");
  } else {  // two codes per byte: the bytes are a flat list, N stands in the scales
    require_rank(scale, 2, "Scale");
    n = known(scale.dim(1), "Scale size N");
    const std::optional<int64_t> bytes = w.shape.try_elements();
    require(bytes == weight_bytes(attrs.scheme, k, n), "Weight shape (", w.shape, ") is not ",
            weight_bytes(attrs.scheme, k, n), " bytes.");
  }

  if (attrs.scheme == Scheme::kFp8E4m3 || attrs.scheme == Scheme::kFp8E5m2) {
    require_dtype(scale, DType::F32, "Scale");
    require(scale.rank() == 1 && (scale.dim(0).is(1) || scale.dim(0).is(n)), "Scale shape (", scale.shape,
            ") is not [1] or [", n, "].");
  } else if (attrs.scheme == Scheme::kNvfp4) {
    require_scales(scale, DType::U8, (k + 15) / 16, n);
    require_dtype(zero, DType::F32, "Global scale");
    require_shape(zero, {1}, "Global scale");
  } else {
    require(attrs.block >= 1, "Block (", attrs.block, ") is not positive.");
    const int64_t blocks = k / attrs.block + (k % attrs.block != 0);
    require_scales(scale, DType::F32, blocks, n);
    if (has_zero_point(attrs.scheme)) {
      require_dtype(zero, DType::F32, "Zero point");
      require_shape(zero, {blocks, n}, "Zero point");
    }
  }
  return n;
}

Types infer_matmul(const InferCall& call) {
  const Scheme scheme = call.attrs<DequantMatmulAttrs>().scheme;
  const int64_t operands = is_gguf(scheme) ? 2 : 4;
  require(call.num_inputs() == operands, "Number of operands (", call.num_inputs(), ") of ", scheme, " is not ",
          operands, ".");
  const TensorType& x = call.input(0);
  require_dtype(x, DType::F32, "Operand x");
  require(x.rank() >= 1, "Operand x has rank 0.");
  const int64_t k = known(x.dim(x.rank() - 1), "Contraction size");
  int64_t n = 0;
  if (is_gguf(scheme)) {
    const int64_t row = row_bytes(scheme, k), bytes = byte_count(call.input(1));
    require(bytes % row == 0, "Packed weight bytes (", bytes, ") are not a multiple of a row (", row, ").");
    n = bytes / row;
  } else {
    n = infer_side(call, k);
  }
  Shape shape = x.shape;
  shape[x.rank() - 1] = n;
  return TensorType{shape, DType::F32};
}

Types infer_grouped(const InferCall& call) {
  const auto& attrs = call.attrs<DequantGroupedMatmulAttrs>();
  const TensorType &x = call.input(0), &idx = call.input(2);
  require_gguf(attrs.scheme);
  require_dtype(x, DType::F32, "Operand x");
  require_rank(x, 2, "Operand x");
  require_index(idx, "Expert index");
  require_rank(idx, 1, "Expert index");
  require_same_dim(x.dim(0), idx.dim(0), "Rows of x and expert indices");
  const int64_t n = known(attrs.n, "Attribute n");
  require(n > 0, "Attribute n (", n, ") is not positive.");
  const int64_t slab = checked_mul(row_bytes(attrs.scheme, known(x.dim(1), "Contraction size")), n);
  const int64_t bytes = byte_count(call.input(1));
  require(bytes % slab == 0, "Packed weight bytes (", bytes, ") are not a multiple of an expert's (", slab, ").");
  return TensorType{{x.dim(0), n}, DType::F32};
}

Types infer_gather(const InferCall& call) {
  const auto& attrs = call.attrs<DequantGatherAttrs>();
  const TensorType &packed = call.input(0), &idx = call.input(1);
  require_gguf(attrs.scheme);
  require_index(idx, "Index");
  const int64_t bytes = byte_count(packed);
  int64_t k = known(attrs.k, "Attribute k");
  if (k == 0) {
    require_rank(packed, 2, "Packed table without attribute k:");
    const SchemeInfo& row = info(attrs.scheme);
    const int64_t own = packed.dim(1).value();
    require(own > 0 && own % row.block_bytes == 0, "Bytes of a row (", own, ") are not a multiple of the block (",
            row.block_bytes, ") of ", attrs.scheme, ".");
    k = own / row.block_bytes * row.block_elems;
  }
  const int64_t own = row_bytes(attrs.scheme, k);
  require(bytes % own == 0, "Packed table bytes (", bytes, ") are not a multiple of a row (", own, ").");
  Shape shape = idx.shape;
  shape.push_back(k);
  return TensorType{shape, DType::F32};
}

Types infer_moe_weights(const InferCall& call) {
  const auto& attrs = call.attrs<DequantMoeWeightsAttrs>();
  require_gguf(attrs.scheme);
  require(attrs.out_shape.size() == 3, "Attribute out_shape (", attrs.out_shape, ") is not [E, K, N].");
  int64_t sizes[3];
  for (size_t i = 0; i < 3; ++i) {
    sizes[i] = known(attrs.out_shape[i], "Attribute out_shape");
    require(sizes[i] >= 0, "Attribute out_shape (", attrs.out_shape, ") has a negative size.");
  }
  const int64_t expected = checked_mul(weight_bytes(attrs.scheme, sizes[1], sizes[2]), sizes[0]);
  const int64_t bytes = byte_count(call.input(0));
  require(bytes == expected, "Packed weight bytes (", bytes, ") are not those of ", sizes[0], " experts (", expected,
          ").");
  return TensorType{Shape(attrs.out_shape), DType::F32};
}

}  // namespace

constinit const Op<DequantMatmulAttrs> dequant_matmul{{.name = "dequant_matmul",
                                                       .category = "Quantised",
                                                       .min_inputs = 2,
                                                       .max_inputs = 4,
                                                       .infer = infer_matmul,
                                                       .traits = {.compute_heavy = true, .fusion_boundary = true},
                                                       .doc = "x times a packed weight that is decoded on the fly."}};

constinit const Op<DequantGroupedMatmulAttrs> dequant_grouped_matmul{
    {.name = "dequant_grouped_matmul",
     .category = "Quantised",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = infer_grouped,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "Each row of x times the packed weight of its expert; an expert that does not exist throws."}};

constinit const Op<DequantGatherAttrs> dequant_gather{
    {.name = "dequant_gather",
     .category = "Quantised",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_gather,
     .doc = "Rows of a packed table, decoded; negative indices count from the end, others out of range throw."}};

constinit const Op<DequantMoeWeightsAttrs> dequant_moe_weights{
    {.name = "dequant_moe_weights",
     .category = "Quantised",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_moe_weights,
     .traits = {.compute_heavy = true, .fusion_boundary = true},
     .doc = "The packed weights of all experts in f32, as [E, K, N]."}};

}  // namespace rlx::ops
