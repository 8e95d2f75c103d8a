#include "core/small_float.h"

#include "backends/reference/kernels/kernels.h"
#include "rlx/ops/small_float.h"

namespace rlx::reference {

void encode_float(const Call& call) {
  const auto& attrs = call.attrs<ops::EncodeFloatAttrs>();
  const Reader x = call.reader(0);
  auto* y = call.output_as<uint8_t>(0);
  for (int64_t i = 0; i < call.output(0).elements(); ++i)
    y[i] = encode(attrs.format, x[i], attrs.saturate, attrs.round_mode);
}

void decode_float(const Call& call) {
  const SmallFloat format = call.attrs<ops::DecodeFloatAttrs>().format;
  const auto* x = call.input_as<uint8_t>(0);
  const Writer y = call.writer(0);
  for (int64_t i = 0; i < call.output(0).elements(); ++i) y.set(i, decode(format, x[i]));
}

}  // namespace rlx::reference
