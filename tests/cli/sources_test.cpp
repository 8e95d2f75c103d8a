// Where inputs come from: archives, pictures, sounds, random numbers. Each graph gives its input back, or says why not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/npy.h"
#include "rlx/tensor.h"
#include "tool.h"

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>

namespace rlx::test {

namespace {

using nlohmann::json;

class Sources : public testing::Test {
 protected:
  // What the tool makes of a source for an input of this type.
  ToolResult run(const std::string& type, const std::string& source, const std::string& more = "") const {
    folder.write("echo.rlx", str("graph @echo {\n  symbol ?16 = \"height\"\n  symbol ?17 = \"width\"\n",
                                 "  %x = input() : ", type, "\n  return y=%x\n}\n"));
    return run_tool(
        str("run ", folder.path("echo.rlx"), " --input x=", source, " --save ", folder.path("out"), " ", more));
  }
  Tensor read(const std::string& type, const std::string& source, const std::string& more = "") const {
    const ToolResult r = run(type, source, more);
    EXPECT_EQ(r.code, 0) << type << " " << source << "\n" << r.err;
    return r.code == 0 ? read_npy(folder.path("out/y.npy")) : Tensor();
  }
  void refuse(const std::string& type, const std::string& source, std::string_view message,
              const std::string& more = "") const {
    const ToolResult r = run(type, source, more);
    EXPECT_EQ(r.code, 1) << type << " " << source;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find(message), r.err.npos) << "expected: " << message << "\n" << r.err;
  }

  // 3 wide, 2 high: a pixel's red is 10 * row + column, green that plus 100, blue plus 200.
  std::string picture(const std::string& name) const {
    std::vector<uint8_t> rgb;
    for (const int base : {0, 1, 2, 10, 11, 12})
      for (const int more : {0, 100, 200}) rgb.push_back(static_cast<uint8_t>(base + more));
    const std::string path = folder.path(name);
    if (name.ends_with(".bmp"))
      stbi_write_bmp(path.c_str(), 3, 2, 3, rgb.data());
    else
      stbi_write_png(path.c_str(), 3, 2, 3, rgb.data(), 9);
    return path;
  }
  // 16 bits, 8 kHz.
  std::string sound(const std::vector<int16_t>& samples, uint16_t channels = 1) const {
    const auto little = [](auto v) { return std::string(reinterpret_cast<const char*>(&v), sizeof v); };
    const auto bytes = static_cast<uint32_t>(samples.size() * 2);
    std::string file = str("RIFF", little(bytes + 36), "WAVEfmt ", little(uint32_t{16}), little(uint16_t{1}),
                           little(channels), little(uint32_t{8000}), little(uint32_t{16000u * channels}),
                           little(static_cast<uint16_t>(2 * channels)), little(uint16_t{16}), "data", little(bytes));
    for (const int16_t s : samples) file += little(s);
    return folder.write("sound.wav", file);
  }

  const TempFolder folder;
};

TEST_F(Sources, ArchivesByKeyByNameOrAlone) {
  write_npz(folder.path("one.npz"), {{"whatever", Tensor::f32({2}, {1, 2})}});
  write_npz(folder.path("many.npz"), {{"x", Tensor::f32({2}, {3, 4})}, {"z", Tensor::f32({2}, {5, 6})}});
  write_npz(folder.path("other.npz"), {{"a", Tensor::f32({2}, {3, 4})}, {"b", Tensor::f32({2}, {5, 6})}});
  EXPECT_EQ(read("[2] f32", folder.path("one.npz")), Tensor::f32({2}, {1, 2}));
  EXPECT_EQ(read("[2] f32", folder.path("many.npz")), Tensor::f32({2}, {3, 4}));
  EXPECT_EQ(read("[2] f32", folder.path("many.npz") + ":z"), Tensor::f32({2}, {5, 6}));
  refuse("[2] f32", folder.path("other.npz"), "holds 2 arrays, none of them 'x'; name one as ");
}

TEST_F(Sources, NumbersBecomeTheInputsDtypeWhereNoneIsLost) {
  write_npy(folder.path("f8.npy"), Tensor::from_doubles(DType::F64, {2}, std::vector<double>{0.5, 3}));
  EXPECT_EQ(read("[2] f32", folder.path("f8.npy")), Tensor::f32({2}, {0.5, 3}));
  write_npy(folder.path("i8.npy"), Tensor::i64({2}, {-1, 70000}));
  EXPECT_EQ(read("[2] i32", folder.path("i8.npy")), Tensor::i32({2}, {-1, 70000}));
  refuse("[2] i16", folder.path("i8.npy"),
         "Input 'x' is [2] i16, which does not hold all of the values given ([2] i64).");
  refuse("[2] f32", folder.path("i8.npy"), "Input 'x' is [2] i64, not [2] f32.");
}

TEST_F(Sources, PicturesInEveryLayout) {
  for (const std::string name : {"p.png", "p.bmp"}) {
    const std::string path = picture(name);
    const Tensor planes = read("[1, 3, ?16, ?17] u8", path);
    EXPECT_EQ(planes.sizes(), (std::vector<int64_t>{1, 3, 2, 3}));
    EXPECT_EQ(planes.to_doubles(),
              (std::vector<double>{0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112, 200, 201, 202, 210, 211, 212}));
    const Tensor pixels = read("[1, ?16, ?17, 3] i32", path);
    EXPECT_EQ(pixels.sizes(), (std::vector<int64_t>{1, 2, 3, 3}));
    EXPECT_EQ(pixels.at(1), 100);
    EXPECT_EQ(pixels.at(3), 1);
    EXPECT_EQ(read("[?16, ?17, 3] u8", path).sizes(), (std::vector<int64_t>{2, 3, 3}));
    EXPECT_EQ(read("[3, ?16, ?17] u8", path).sizes(), (std::vector<int64_t>{3, 2, 3}));
    EXPECT_EQ(read("[1, 4, ?16, ?17] u8", path).at(18), 255);  // opaque
    const Tensor grey = read("[?16, ?17] u8", path);
    EXPECT_EQ(grey.sizes(), (std::vector<int64_t>{2, 3}));
    EXPECT_GT(grey.at(0), 50);
    EXPECT_LT(grey.at(0), 100);
  }
}

TEST_F(Sources, PicturesAsFloatsAreZeroToOneUnlessSaidOtherwise) {
  const std::string path = picture("p.PNG");
  EXPECT_FLOAT_EQ(static_cast<float>(read("[1, 3, 2, 3] f32", path).at(17)), 212 / 255.0f);
  EXPECT_EQ(read("[1, 3, 2, 3] f32", path, "--scale 1").at(17), 212);
  const Tensor t = read("[1, 3, 2, 3] f32", path, "--scale 1 --mean 1,2,3 --std 2 --bgr");
  EXPECT_EQ(t.at(0), (200 - 1) / 2.0);  // blue first
  EXPECT_EQ(t.at(17), (12 - 3) / 2.0);
  refuse("[1, 3, 2, 3] f32", path, "Option --mean has 2 numbers for a picture of 3 channels.", "--mean 1,2");
}

TEST_F(Sources, PicturesAreStretchedToAFixedSize) {
  const std::string path = picture("p.png");
  const ToolResult r = run("[1, 3, 4, 6] u8", path);
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("(3 x 2) is stretched to 6 x 4, the size of input 'x'."), r.err.npos) << r.err;
  const Tensor t = read_npy(folder.path("out/y.npy"));
  EXPECT_EQ(t.sizes(), (std::vector<int64_t>{1, 3, 4, 6}));
  EXPECT_EQ(t.at(0), 0);  // corners stay
  EXPECT_EQ(t.at(23), 12);
  EXPECT_EQ(read("[1, 3, ?16, ?17] u8", path, "--dim height=1 --dim width=1").num_elements(), 3);
}

TEST_F(Sources, JpegsAreRead) {
  std::vector<uint8_t> grey(16 * 16, 128);
  stbi_write_jpg(folder.path("p.jpg").c_str(), 16, 16, 1, grey.data(), 95);
  const Tensor t = read("[1, 1, ?16, ?17] u8", folder.path("p.jpg"));
  EXPECT_EQ(t.sizes(), (std::vector<int64_t>{1, 1, 16, 16}));
  EXPECT_NEAR(t.at(100), 128, 2);
}

TEST_F(Sources, PicturesThatDoNotFit) {
  const std::string path = picture("p.png");
  refuse("[?16] f32", path, "Input 'x' ([?16] f32) takes no picture: it is not of rank 2 to 4.");
  refuse("[2, 3, ?16, ?17] f32", path, "takes no picture: it takes several at once.");
  refuse("[1, 5, 6, 7] f32", path, "neither its first nor its last axis is 1, 3 or 4 channels");
  refuse("[1, 3, ?16, ?17] bool", path, "its dtype does not hold pixels");
  folder.write("bad.png", "\x89PNG\r\n\x1a\nnothing");
  refuse("[1, 3, ?16, ?17] u8", folder.path("bad.png"), "bad.png' cannot be read as PNG, JPEG or BMP (");
  const std::string whole = read_whole_file(path);
  folder.write("cut.png", whole.substr(0, whole.size() / 2));
  refuse("[1, 3, ?16, ?17] u8", folder.path("cut.png"), "cut.png' cannot be read");
  refuse("[1, 3, ?16, ?17] u8", "/no/p.png", "/no/p.png");
}

TEST_F(Sources, SoundsAreOneChannelUnlessTheInputHasMore) {
  const std::string mono = sound({0, 16384, -32768, 8192});
  for (const std::string type : {"[?16] f32", "[1, ?16] f32", "[?17, ?16] f32", "[1, 1, ?16] f32", "[4] f32"}) {
    const Tensor t = read(type, mono);
    EXPECT_EQ(t.sizes().back(), 4) << type;
    EXPECT_EQ(t.to_doubles(), (std::vector<double>{0, 0.5, -1, 0.25})) << type;
  }
  EXPECT_EQ(read("[1, ?16] i16", mono).at(2), -32768);
  const std::string stereo = sound({0, 16384, -32768, 0}, 2);
  EXPECT_EQ(read("[1, ?16] f32", stereo), Tensor::f32({1, 2}, {0.25, -0.5}));
  EXPECT_EQ(read("[2, ?16] f32", stereo), Tensor::f32({2, 2}, {0, -1, 0.5, 0}));
  EXPECT_EQ(read("[1, 2, 2] f32", stereo), Tensor::f32({1, 2, 2}, {0, -1, 0.5, 0}));
}

TEST_F(Sources, SoundsThatDoNotFit) {
  const std::string path = sound({1, 2, 3});
  refuse("[1, 512] f32", path, "Input 'x' ([1, 512] f32) takes 512 samples; '");
  refuse("[1, 512] f32", path, "has 3 at 8000 Hz.");
  refuse("[3, ?16] f32", path, "takes no sound of 1 channel; [N], [1, N] and [1, 1, N] do.");
  refuse("[1, ?16] i64", path, "its dtype is neither a float type nor i16");
  folder.write("bad.wav", "RIFF");
  refuse("[?16] f32", folder.path("bad.wav"), "bad.wav' is not a WAV file.");
}

TEST_F(Sources, ANumberFillsWhatTheOtherInputsSay) {
  EXPECT_EQ(read("[] i64", "16000"), Tensor::i64({}, {16000}));
  EXPECT_EQ(read("[2] i64", "9007199254740993"), Tensor::i64({2}, {9007199254740993, 9007199254740993}));
  EXPECT_EQ(read("[1, ?16] f32", "-0.5", "--dim height=3"), Tensor::f32({1, 3}, {-0.5, -0.5, -0.5}));
  refuse("[] i64", "0.5", "Input 'x' ([] i64) cannot be 0.5.");
  refuse("[] u8", "256", "does not hold all of the values given");
  folder.write("two.rlx",
               "graph @g {\n  symbol ?16 = \"n\"\n  %a = input() : [?16] f32\n  %b = input() : [?16] f32\n"
               "  %c = add(%a, %b) : [?16] f32\n  return %c\n}\n");
  write_npy(folder.path("b.npy"), Tensor::f32({2}, {1, 2}));
  const ToolResult r =
      run_tool(str("run ", folder.path("two.rlx"), " --input a=1 b=", folder.path("b.npy"), " --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.json()["outputs"][0]["first"], json({2.0, 3.0}));
}

TEST_F(Sources, SizesThatNobodyGivesAreOneForRandomInputs) {
  folder.write("g.rlx", "graph @g {\n  symbol ?16 = \"height\"\n  %x = input() : [?16, 3] f32\n  return %x\n}\n");
  const ToolResult r = run_tool(str("run ", folder.path("g.rlx"), " --random-inputs --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err, "rlx: warning: Size ?16 ('height') is not given and taken as 1; --dim height=N sets it.\n");
  EXPECT_EQ(r.json()["outputs"][0]["shape"], json({1, 3}));
}

TEST_F(Sources, SeveralValuesMayFollowOneOption) {
  folder.write("g.rlx", R"(graph @g {
  %a = input() : [1] f32
  %b = input() : [1] f32
  return %a, %b
})");
  const ToolResult r =
      run_tool(str("run ", folder.path("g.rlx"), " --input a=random:1 b=random:1 --output b a --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  ASSERT_EQ(r.json()["outputs"].size(), 2u);
  EXPECT_EQ(r.json()["outputs"][0]["name"], "b");
}

}  // namespace

}  // namespace rlx::test
