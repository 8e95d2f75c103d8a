// Models in memory, opened and run; and what a refusal may cost.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "import/onnx/session.h"
#include "import/onnx_model.h"
#include "support/expect_error.h"
#include "support/random.h"

namespace rlx::test {

using onnx::HostValue;
using onnx::Session;
using Sizes = std::map<std::string, int64_t>;

std::unique_ptr<Session> open(const std::string& model, const std::string& folder = "", const Sizes& sizes = {});

HostValue host(const Tensor& t);  // its element type as the dtype says
std::vector<HostValue> run_values(Session& session, const std::map<std::string, HostValue>& inputs);
// Outputs that are all tensors.
std::vector<Tensor> run(Session& session, const NamedTensors& inputs = {});
std::vector<Tensor> run(const std::string& model, const NamedTensors& inputs = {});

// Random inputs of the declared types, symbols as 2; nullopt when there are none that are small enough to be made.
std::optional<std::map<std::string, HostValue>> random_inputs(const Session& session, Rng& rng);

// Runs `work`, which must throw Error with `text` in it; within a second of processor time, and without the memory of
// this process growing by more than 64 MiB.
void expect_cheap_error(const std::function<void()>& work, std::string_view text);

}  // namespace rlx::test
