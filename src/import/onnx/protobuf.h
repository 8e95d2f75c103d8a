// protozero, with its assertions as exceptions: they can be reached by a bad file.
#pragma once

#include <protozero/exception.hpp>

namespace rlx::onnx {

struct WrongFieldType : protozero::exception {
  const char* what() const noexcept override { return "a field has another type than ONNX says"; }
};

}  // namespace rlx::onnx

#define protozero_assert(condition)                        \
  do {                                                     \
    if (!(condition)) throw ::rlx::onnx::WrongFieldType(); \
  } while (false)

#include <protozero/pbf_reader.hpp>
