// Bad input is exit code 1 with the library's message alone, wrong usage is 2; neither writes to standard output.
#include <gtest/gtest.h>

#include "core/npy.h"
#include "tool.h"

namespace rlx::test {

namespace {

class CliErrors : public testing::Test {
 protected:
  void expect(const std::string& args, int code, std::string_view message) {
    const ToolResult r = run_tool(args);
    EXPECT_EQ(r.code, code) << args << "\n" << r.err;
    EXPECT_EQ(r.out, "") << args;
    EXPECT_TRUE(r.err.starts_with("rlx: ")) << args << "\n" << r.err;
    EXPECT_NE(r.err.find(message), r.err.npos) << args << "\nexpected: " << message << "\n" << r.err;
  }

  const TempFolder folder;
  const std::string toy = folder.write("toy.rlx", kToyGraph);
  const std::string run_toy = str("run ", toy, " --random-inputs --random-params ");
};

TEST_F(CliErrors, FilesThatAreNotThere) {
  std::filesystem::create_directory(folder.path("folder.rlx"));
  folder.write("model.txt", kToyGraph);
  for (const std::string command : {"run ", "info ", "check ", "bench "}) {
    expect(command + folder.path("none.rlx"), 1, "none.rlx' cannot be opened (No such file or directory).");
    expect(command + folder.path("folder.rlx"), 1, "it is a directory");
    expect(command + folder.path("model.txt"), 1, "model.txt' is not a model that rlx can load");
  }
  // Language models have commands of their own, which these name.
  std::filesystem::create_directory(folder.path("bert"));
  folder.write("bert/config.json", "{}");
  folder.write("m.gguf", "GGUF");
  for (const std::string command : {"run ", "info ", "check "})
    for (const std::string& model : {folder.path("m.gguf"), folder.path("bert"), std::string("smollm2")})
      expect(command + model, 1, str("'", model, "' is a language model or an encoder of texts, which rlx generate, "));
  expect(run_toy + "--input x=/no/x.npy", 1, "/no/x.npy");
  expect(run_toy + "--params /no/w.npz --dim batch=1", 1, "/no/w.npz");
}

TEST_F(CliErrors, TolerancesAreNotNegative) {
  for (const std::string value : {"--rtol -1", "--atol -0.5", "--rtol nan"})
    expect("test-onnx " + folder.path("") + " " + value, 1, "are not numbers from 0 on.");
}

TEST_F(CliErrors, MalformedTextNamesThePlace) {
  folder.write("bad.rlx", "graph @g {\n  %x = input() : [2] f32\n  %y = no_such_op(%x) : [2] f32\n  return %y\n}\n");
  for (const std::string command : {"run ", "info ", "check ", "bench "})
    expect(command + folder.path("bad.rlx"), 1, "bad.rlx:3:8: There is no op 'no_such_op'.");
  folder.write("type.rlx", "graph @g {\n  %x = input() : [2] f32\n  %y = neg(%x) : [3] f32\n  return %y\n}\n");
  expect("run " + folder.path("type.rlx"), 1, "at %y (neg)");
  expect("run " + folder.path("type.rlx"), 1, "\n  - while reading ");
}

TEST_F(CliErrors, NamesThatTheGraphHasNot) {
  expect(run_toy + "--input q=random:3", 1, "There is no input 'q'; there are: 'x', 'n'.");
  expect(run_toy + "--dim batch=1 --param q=random:3", 1, "There is no param 'q'; there are: 'w'.");
  expect(run_toy + "--dim batch=1 --output q", 1, "There is no output 'q'; there are: 'c', 'probs', 'n'.");
  expect(run_toy + "--dim heads=1", 1, "There is no symbol 'heads'; there are: ?0 ('batch').");
  expect(run_toy + "--dim '?5=1'", 1, "There is no symbol '?5'");
  write_npz(folder.path("w.npz"), {{"v", Tensor::f32({1}, {1})}});
  expect(run_toy + "--dim batch=1 --params " + folder.path("w.npz"), 1, "There is no param 'v'");
  expect(run_toy + "--input x=" + folder.path("w.npz") + ":q", 1, "holds no array 'q'; there are: 'v'.");
}

TEST_F(CliErrors, ShapesAndDtypesThatDoNotFit) {
  expect(run_toy + "--input x=random:3x5", 1, "Input 'x' is [?0, 4] f32, which random:3x5 is not.");
  expect(run_toy + "--input x=random:3,4", 1, "Shape '3,4' is not sizes like 2x3x4, nor 'scalar'.");
  expect(run_toy + "--input x=random:1x4:z", 1, "Seed 'z'");
  expect(run_toy + "--input x=random:3x4 --dim batch=5", 1, "Symbol ?0 ('batch') is 5 by --dim and 3 by the inputs.");
  write_npy(folder.path("x.npy"), Tensor::f32({2, 3}, {1, 2, 3, 4, 5, 6}));
  expect(run_toy + "--input x=" + folder.path("x.npy"), 1, "Input 'x' has sizes [2, 3], its declaration [?0, 4].");
  write_npy(folder.path("x.npy"), Tensor::i32({1, 4}, {1, 2, 3, 4}));
  expect(run_toy + "--input x=" + folder.path("x.npy"), 1, "Input 'x' is [1, 4] i32, not ");
  write_npy(folder.path("w.npy"), Tensor::f32({3}, {1, 2, 3}));
  expect(run_toy + "--dim batch=1 --param w=" + folder.path("w.npy"), 1, "Param 'w' is [3] f32, not [4] f32.");
}

TEST_F(CliErrors, TruncatedArrays) {
  write_npy(folder.path("x.npy"), Tensor::f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const std::string whole = read_whole_file(folder.path("x.npy"));
  for (const size_t size : {size_t{5}, size_t{60}, whole.size() - 1}) {
    folder.write("cut.npy", whole.substr(0, size));
    expect(run_toy + "--input x=" + folder.path("cut.npy"), 1, "cut.npy");
  }
  folder.write("cut.npz", "PK\x03\x04");
  expect(run_toy + "--dim batch=1 --params " + folder.path("cut.npz"), 1, "cut.npz");
}

TEST_F(CliErrors, InputsParamsAndSizesThatAreNotGiven) {
  const std::string both =
      "rlx: Inputs are not given: 'x' ([batch, 4] f32), 'n' ([] i64); --input NAME=SOURCE gives one, "
      "--random-inputs all.\n";
  EXPECT_EQ(run_tool("run " + toy).err, both);
  EXPECT_EQ(run_tool("run " + toy + " --random-params --dim batch=2").err, both);
  expect("run " + toy + " --input x=random:2x4", 1, "Inputs are not given: 'n' ([] i64);");
  expect("run " + toy + " --random-inputs --dim batch=1", 1, "Params are not set: 'w' ([4] f32).");
  expect("info " + toy + " --plan", 1, "Symbols without a size (?0 ('batch'))");
}

TEST_F(CliErrors, Devices) {
  expect(run_toy + "--dim batch=1 --device quantum", 1, "There is no device 'quantum'; there are: auto, ");
  expect("info " + toy + " --plan --dim batch=1 --device quantum", 1, "There is no device 'quantum'");
}

TEST_F(CliErrors, FoldersThatCannotBeMade) {
  folder.write("file", "x");
  expect(run_toy + "--dim batch=1 --save " + folder.path("file/out"), 1, "cannot be made (");
  folder.write("twice.rlx", "graph @g {\n  %x = input() : [1] f32\n  return \"a/b\"=%x, \"a_b\"=%x\n}\n");
  expect("run " + folder.path("twice.rlx") + " --random-inputs --save " + folder.path("out"), 1,
         "Outputs 'a/b' and 'a_b' would both be saved as a_b.npy");
}

TEST_F(CliErrors, TooMuchMemoryIsAMessage) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers' operator new ends the process";
#endif
  expect(
      run_toy + "--input x=random:999999999999999x4", 1,
      "Random values for 'x' ([999999999999999, 4] f32) need 31999999999999968 bytes of memory, which are not there.");
  expect(run_toy + "--input x=random:9223372036854775807x4", 1, "");
}

TEST_F(CliErrors, FaultsOfARunAreMessages) {
  folder.write("div.rlx",
               "graph @g {\n  %x = input() : [1] i32\n  %z = sub(%x, %x) : [1] i32\n"
               "  %y = div(%x, %z) : [1] i32\n  return %y\n}\n");
  expect("run " + folder.path("div.rlx") + " --random-inputs", 1, "An integer is divided by 0");
  expect("check " + folder.path("div.rlx"), 1, "An integer is divided by 0");
}

TEST_F(CliErrors, WrongUsageIsTwo) {
  expect("", 2, "rlx --help");
  expect("frobnicate", 2, "There is no command 'frobnicate'.");
  expect("run", 2, "MODEL is required");
  expect("run " + toy + " --frobnicate", 2, "--frobnicate");
  expect("run " + toy + " " + toy, 2, "toy.rlx");
  expect("run " + toy + " --repeat 0", 2, "--repeat");
  expect("run " + toy + " --repeat many", 2, "--repeat");
  expect("run " + toy + " --random-inputs=x", 2, "the seed 'x' is not a whole number from 0");
  expect("run " + toy + " --device", 2, "--device");
  expect("check " + toy + " --seed x", 2, "--seed");
  expect("bench", 2, "MODEL, or --op NAME, is required");
  expect("bench " + toy + " --op softmax", 2, "excludes");
  expect("bench " + toy + " --runs 0", 2, "--runs");
  for (const std::string size : {"0", "-5", "abc"}) {
    expect("generate model.gguf -p a --ctx " + size, 2, str("--ctx: Value ", size, " not in range "));
    expect("generate model.gguf -p a --ctx " + size, 2, "1048576");
  }
  for (const std::string option : {"--dim a=1", "--input x=x.npy", "--seed 1", "--seconds 1", "--warmup 1",
                                   "--param w=w.npy", "--params w.npz", "--bgr"}) {
    const std::string name = option.substr(0, option.find(' '));
    expect("bench none.gguf " + option, 2, str("Option ", name, " is not for a language model.\n"));
    if (name != "--seconds") expect("bench --op softmax " + option, 2, str("Option ", name, " is not for ops.\n"));
  }
  expect("bench --op softmax --runs 3", 2, "Option --runs is not for ops.");
  expect("bench " + toy + " --cache-type f16", 2, "Option --cache-type is not for a model that is no language model.");
  expect("trace " + toy, 2, "OUT is required");
  expect("ops --json --markdown", 2, "excludes");
}

TEST_F(CliErrors, OptionsWithoutANameAreBadInput) {
  expect(run_toy + "--input x", 1, "Option --input 'x' is not of the form NAME=VALUE.");
  expect(run_toy + "--dim =4", 1, "Option --dim '=4' is not of the form NAME=VALUE.");
  expect(run_toy + "--dim batch=four", 1, "Size 'four' of symbol ?0 ('batch') is not a whole number from 0.");
  expect(run_toy + "--dim batch=1 --dim '?0=1'", 1, "is given twice");
  expect(run_toy + "--input n=random:scalar --input n=random:scalar", 1, "Input 'n' is given twice.");
}

}  // namespace

}  // namespace rlx::test
