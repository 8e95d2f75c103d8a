// Where a tensor of the command line comes from: x=file.npy, x=photo.png, x=random:1x3x224x224.
#pragma once

#include <string>
#include <string_view>

#include "common.h"
#include "image.h"

namespace rlx::cli {

// `spec` is FILE.npy, FILE.npz[:KEY], a picture, a .wav or random:SHAPE[:SEED]. `known` is the port's type with the
// sizes that are known so far: pictures and sounds are brought to it. `kind` is "Input" or "Param", for messages.
Tensor read_source(const std::string& spec, const Port& port, const TensorType& known, std::string_view kind,
                   const ImageArgs& image);

// Is the source a number, x=16000 or x=0.5? Then every element is that number.
bool is_number(const std::string& spec);
Tensor filled(const std::string& number, const Port& port, std::vector<int64_t> sizes, std::string_view kind);

// For an input of which the model says too little to convert anything: a .npy or .npz as it is. `text` is what it says.
Tensor read_untyped_source(const std::string& spec, const std::string& input, const std::string& text);

// A tensor read from a file as the port wants it: floats become the port's floats, integers its integers where all of
// them fit. Anything else stays, for the run to refuse.
Tensor as_declared(Tensor tensor, const Port& port, std::string_view kind);

}  // namespace rlx::cli
