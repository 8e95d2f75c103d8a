// Threads that compile and run on one device at the same time, each with executables of its own.
#include <barrier>
#include <thread>

#include "backends/webgpu/device.h"
#include "rlx/ops.h"
#include "support/random_graph.h"
#include "webgpu_test.h"

namespace rlx::test {

using ThreadsOnWebGpu = WebGpu;

using Results = std::vector<Tensor>;

static Results run_twice(uint64_t seed) {
  Rng rng(seed);
  const RandomGraph r = random_graph(rng);
  Executable exe = compile(r.graph, webgpu_options());
  for (const Port& p : exe.params()) exe.set_param(p.name, r.params.at(p.name));
  exe.run_slots(r.inputs);
  const std::span<const Tensor> results = exe.run_slots(r.inputs);
  Results out;
  for (const Tensor& t : results) out.push_back(t.clone());
  return out;
}

TEST_F(ThreadsOnWebGpu, CompileAndRunAtTheSameTime) {
  constexpr size_t kThreads = 4, kGraphs = 6;
  std::vector<std::vector<Results>> actual(kThreads, std::vector<Results>(kGraphs));
  std::vector<std::thread> threads;
  std::vector<std::string> errors(kThreads);
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      try {
        for (size_t i = 0; i < kGraphs; ++i) {
          const size_t graph = (i + t) % kGraphs;  // each begins with another
          actual[t][graph] = run_twice(first_seed() + graph);
        }
      } catch (const std::exception& e) {
        errors[t] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& e : errors) EXPECT_EQ(e, "");
  for (size_t i = 0; i < kGraphs; ++i) {
    const Results expected = run_twice(first_seed() + i);
    for (size_t t = 0; t < kThreads; ++t) {
      const Results& got = actual[t][i];
      ASSERT_EQ(got.size(), expected.size());
      for (size_t r = 0; r < expected.size(); ++r)
        EXPECT_TRUE(got[r].type() == expected[r].type() && got[r] == expected[r])
            << "graph " << i << ", thread " << t << ", output " << r;
    }
  }
}

TEST_F(ThreadsOnWebGpu, ClonesRunAtTheSameTime) {
  Graph g;
  const Value x = g.input("x", {{5, 40}, DType::F32}), w = g.param("w", {{40, 24}, DType::F32});
  g.output(ops::softmax(ops::matmul(x, w)), "y");
  Rng rng(1);
  Executable exe = compile(g, webgpu_options());
  exe.set_param("w", rng.tensor({40, 24}));
  constexpr size_t kClones = 4;
  std::vector<Executable> clones;
  std::vector<Tensor> inputs, expected;
  for (size_t i = 0; i < kClones; ++i) {
    clones.push_back(exe.clone());
    inputs.push_back(rng.tensor({5, 40}));
    expected.push_back(exe.run({{"x", inputs[i]}}).at("y"));
  }
  std::vector<int> same(kClones, 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kClones; ++i)
    threads.emplace_back([&, i] {
      for (int run = 0; run < 50; ++run) same[i] += clones[i].run({{"x", inputs[i]}}).at("y") == expected[i];
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(same, std::vector<int>(kClones, 50));
}

// Between two runs: inside a call wgpu-native ends the process.
TEST_F(ThreadsOnWebGpu, ALostDeviceIsAnErrorInEveryThread) {
  Graph g;
  const Value x = g.input("x", {{300, 20}, DType::F32});
  g.output(ops::softmax(ops::tanh(x)), "y");
  const NamedTensors inputs = {{"x", Rng(1).tensor({300, 20})}};
  const Tensor expected = compile(g, webgpu_options()).run(inputs).at("y");
  constexpr size_t kThreads = 4;
  std::vector<std::string> errors(kThreads);
  std::vector<ErrorKind> kinds(kThreads, ErrorKind::kInternal);
  std::vector<int> same(kThreads, 0);
  std::barrier lose(kThreads, []() noexcept { webgpu::Device::open(webgpu_options().webgpu)->destroy(); });
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Executable exe = compile(g, webgpu_options());
      same[t] += exe.run(inputs).at("y") == expected;
      lose.arrive_and_wait();
      try {
        exe.run(inputs);
      } catch (const Error& e) {
        errors[t] = e.what();
        kinds[t] = e.kind();
      }
      same[t] += compile(g, webgpu_options()).run(inputs).at("y") == expected;  // on a new one
    });
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < kThreads; ++t) {
    EXPECT_EQ(kinds[t], ErrorKind::kUnavailable) << errors[t];
    EXPECT_NE(errors[t].find("The GPU device is lost"), std::string::npos) << errors[t];
  }
  EXPECT_EQ(same, std::vector<int>(kThreads, 2));
}

}  // namespace rlx::test
