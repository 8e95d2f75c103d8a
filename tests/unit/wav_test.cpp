// Sound files: what every format holds, and that no file, however broken, is more than an Error.
#include "core/wav.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "rlx/error.h"
#include "support/temp_folder.h"

namespace rlx {

namespace {

template <class T>
std::string little(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

std::string chunk(std::string_view id, const std::string& body) {
  return str(id, little(static_cast<uint32_t>(body.size())), body, body.size() % 2 == 1 ? std::string(1, '\0') : "");
}

std::string format(uint16_t tag, uint16_t channels, uint32_t rate, uint16_t bits) {
  const auto block = static_cast<uint16_t>(channels * bits / 8);
  return chunk("fmt ",
               little(tag) + little(channels) + little(rate) + little(rate * block) + little(block) + little(bits));
}

std::string riff(const std::string& chunks) {
  return str("RIFF", little(static_cast<uint32_t>(chunks.size() + 4)), "WAVE", chunks);
}

Wav parse(const std::string& file) { return parse_wav(std::as_bytes(std::span(file)), "a.wav"); }

std::string message(const std::string& file) {
  try {
    parse(file);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(Wav, EveryWidthOfSamples) {
  const auto one = [](uint16_t tag, uint16_t bits, const std::string& data) {
    const Wav wav = parse(riff(format(tag, 1, 16000, bits) + chunk("data", data)));
    EXPECT_EQ(wav.rate, 16000);
    EXPECT_EQ(wav.channels, 1);
    return wav.samples;
  };
  using Samples = std::vector<float>;
  EXPECT_EQ(one(1, 8, std::string("\x00\x80\xff\xc0", 4)), (Samples{-1, 0, 127 / 128.0f, 0.5f}));
  EXPECT_EQ(one(1, 16, little<int16_t>(-32768) + little<int16_t>(16384)), (Samples{-1, 0.5f}));
  EXPECT_EQ(one(1, 24, std::string("\x00\x00\x80\x00\x00\x40\xff\xff\xff", 9)), (Samples{-1, 0.5f, -0x1p-23f}));
  EXPECT_EQ(one(1, 32, little<int32_t>(INT32_MIN) + little<int32_t>(1 << 30)), (Samples{-1, 0.5f}));
  EXPECT_EQ(one(3, 32, little(0.25f) + little(-1.5f)), (Samples{0.25f, -1.5f}));
  EXPECT_EQ(one(3, 64, little(0.25)), (Samples{0.25f}));
}

TEST(Wav, ChunksBesideTheSoundAreSkipped) {
  const std::string data =
      chunk("data", little<int16_t>(1) + little<int16_t>(2) + little<int16_t>(3) + little<int16_t>(4));
  const Wav wav = parse(riff(chunk("LIST", "odd") + format(1, 2, 44100, 16) + chunk("fact", "1234") + data));
  EXPECT_EQ(wav.channels, 2);
  EXPECT_EQ(wav.frames(), 2);
  EXPECT_EQ(wav.samples[3], 4 / 0x1p15f);
}

TEST(Wav, TheExtensibleFormatNamesItsOwn) {
  std::string body = format(0xFFFE, 1, 8000, 32).substr(8);
  body +=
      little<uint16_t>(22) + little<uint16_t>(32) + little<uint32_t>(4) + little<uint16_t>(3) + std::string(14, '\0');
  EXPECT_EQ(parse(riff(chunk("fmt ", body) + chunk("data", little(0.5f)))).samples, std::vector<float>{0.5f});
}

TEST(Wav, APipesUnknownSizeReachesToTheEnd) {
  const std::string head = riff(format(1, 1, 8000, 16));
  for (const uint32_t size : {0xFFFFFFFFu, 0x7FFFF000u})
    EXPECT_EQ(parse(head + "data" + little(size) + little<int16_t>(8192)).samples, std::vector<float>{0.25f});
  EXPECT_EQ(parse(head + chunk("data", "")).frames(), 0);
}

TEST(Wav, WhatIsWrongIsASentence) {
  EXPECT_EQ(message("RIFX....WAVE...."), "File 'a.wav' is not a WAV file.");
  EXPECT_EQ(message(riff(format(1, 0, 8000, 16) + chunk("data", ""))), "Sound 'a.wav' has no channels.");
  EXPECT_EQ(message(riff(format(1, 1, 0, 16) + chunk("data", ""))), "Sound 'a.wav' has a sample rate of 0.");
  EXPECT_EQ(message(riff(format(1, 1, 8000, 16))), "Sound 'a.wav' has no 'data' chunk.");
  EXPECT_EQ(message(riff(chunk("data", "1234"))), "Sound 'a.wav' has no 'fmt ' chunk before its data.");
  EXPECT_NE(message(riff(format(2, 1, 8000, 4) + chunk("data", ""))).find("has samples of format 2 with 4 bits"),
            std::string::npos);
  EXPECT_NE(message(riff(format(1, 1, 8000, 16) + "data" + little<uint32_t>(1000) + "12")).find("goes beyond its end"),
            std::string::npos);
}

TEST(Wav, BrokenFilesAreErrorsAndNothingElse) {
  const std::string whole = riff(chunk("LIST", "odd") + format(1, 2, 44100, 24) + chunk("data", std::string(60, 'x')));
  for (size_t size = 0; size < whole.size(); ++size) {
    try {
      parse(whole.substr(0, size));
    } catch (const Error&) {
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string file = whole;
    for (int n = 0; n < 3; ++n) file[random() % file.size()] = static_cast<char>(random());
    try {
      EXPECT_LE(parse(file).samples.size(), file.size());
    } catch (const Error&) {
    }
  }
}

}  // namespace

}  // namespace rlx
