// Archives that no writer of ours makes, built byte by byte.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/npy.h"
#include "support/expect_error.h"
#include "support/random.h"
#include "support/temp_folder.h"

namespace rlx {
namespace {

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(i < 8 ? (value >> (8 * i)) & 255 : 0);
}

uint32_t crc32(std::string_view data) {
  uint32_t crc = ~0u;
  for (const char c : data) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

struct Entry {
  std::string name, packed;
  uint32_t size = 0, crc = 0;
  uint16_t method = 0, flags = 0;
  bool shared = false;  // its bytes are those of the entry before
};
Entry stored(std::string name, const std::string& data) {
  return {std::move(name), data, static_cast<uint32_t>(data.size()), crc32(data)};
}

std::string archive(const std::vector<Entry>& entries) {
  std::string out, directory;
  uint32_t offset = 0;
  for (const Entry& e : entries) {
    const auto fields = [&](std::string& s) {
      put(s, 20, 2);
      put(s, e.flags, 2);
      put(s, e.method, 2);
      put(s, 0, 2);   // time
      put(s, 33, 2);  // date
      put(s, e.crc, 4);
      put(s, e.packed.size(), 4);
      put(s, e.size, 4);
      put(s, e.name.size(), 2);
      put(s, 0, 2);  // extra field
    };
    if (!e.shared) {
      offset = static_cast<uint32_t>(out.size());
      out += "PK\3\4";
      fields(out);
      out += e.name + e.packed;
    }
    directory += "PK\1\2";
    put(directory, 20, 2);
    fields(directory);
    put(directory, 0, 2 + 2 + 2 + 4);  // comment, disk, attributes
    put(directory, offset, 4);
    directory += e.name;
  }
  const size_t start = out.size();
  out += directory + "PK\5\6";
  put(out, 0, 4);
  put(out, entries.size(), 2);
  put(out, entries.size(), 2);
  put(out, directory.size(), 4);
  put(out, start, 4);
  put(out, 0, 2);
  return out;
}

std::string npy(std::string_view shape, std::string_view data) {
  std::string dict = str("{'descr': '|u1', 'fortran_order': False, 'shape': ", shape, "}");
  std::string out = "\x93NUMPY\1";
  put(out, 0, 1);
  put(out, dict.size(), 2);
  return out + dict + std::string(data);
}

std::map<std::string, Tensor> parse(const std::vector<Entry>& entries) {
  const std::string file = archive(entries);
  return parse_npz(as_bytes(file), "test");
}

TEST(Npz, ReadsSeveralEntries) {
  const auto arrays = parse({stored("a.npy", npy("(2,)", "xy")), stored("dir/b.npy", npy("()", "z"))});
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays.at("a").at(1), 'y');
  EXPECT_EQ(arrays.at("dir/b").at(0), 'z');
}

TEST(Npz, AnEmptyMapIsAnArchiveWithoutEntries) {
  const test::TempFolder folder;
  write_npz(folder.path("a.npz"), {});
  EXPECT_TRUE(read_npz(folder.path("a.npz")).empty());
}

TEST(Npz, WritingReplacesTheWholeArchiveAndIsReproducible) {
  const test::TempFolder folder;
  write_npz(folder.path("a.npz"), {{"old", Tensor::f32({1}, {1})}, {"b", Tensor::f32({1}, {1})}});
  write_npz(folder.path("a.npz"), {{"new", Tensor::i32({1}, {3})}});
  EXPECT_EQ(read_npz(folder.path("a.npz")).size(), 1u);
  write_npz(folder.path("b.npz"), {{"new", Tensor::i32({1}, {3})}});
  EXPECT_EQ(test::read_whole_file(folder.path("a.npz")), test::read_whole_file(folder.path("b.npz")));
}

TEST(Npz, EachKindOfBadEntryIsAnErrorThatNamesIt) {
  const Entry good = stored("a.npy", npy("(2,)", "xy"));
  EXPECT_ERROR(parse({stored("readme.txt", "hello")}), kInvalid, "The entry's name does not end with .npy");
  EXPECT_ERROR(parse({stored("readme.txt", "hello")}), kInvalid, "while reading entry 'readme.txt'");
  EXPECT_ERROR(parse({stored("a.npy", "hello, hello")}), kInvalid, "This is not an .npy array");
  EXPECT_ERROR(parse({stored("a.npy", npy("(3,)", "xy"))}), kInvalid, "truncated");
  EXPECT_ERROR(parse({stored("a.npy", "")}), kInvalid, "magic number");
  EXPECT_ERROR(parse({good, good}), kInvalid, "second entry of this name");

  Entry e = good;
  e.crc ^= 1;
  EXPECT_ERROR(parse({e}), kInvalid, "The entry is damaged (CRC error)");
  e = good;
  e.method = 12;  // bzip2
  EXPECT_ERROR(parse({e}), kUnsupported, "compression method (12)");
  e = good;
  e.flags = 1;
  EXPECT_ERROR(parse({e}), kUnsupported, "encrypted");
  e = good;
  e.method = 8;  // what follows is no deflate stream
  e.packed = "\xff\xff\xff\xff";
  EXPECT_ERROR(parse({e}), kInvalid, "damaged");
}

TEST(Npz, SizesThatTheArchiveCannotHoldAreErrorsBeforeAnythingIsAllocated) {
  Entry e = stored("a.npy", npy("(4000000000,)", "xy"));
  EXPECT_ERROR(parse({e}), kInvalid, "truncated");  // the header asks for more than the entry has
  e.size = static_cast<uint32_t>(npy("(4000000000,)", "").size() + 4'000'000'000u);
  EXPECT_ERROR(parse({e}), kInvalid, "is more than its compressed bytes");  // and now the entry agrees
  e.method = 8;
  EXPECT_ERROR(parse({e}), kInvalid, "is more than its compressed bytes");
}

TEST(Npz, EntriesThatShareTheirBytesAreAnError) {
  std::vector<Entry> entries(50, stored("A.npy", npy("(200,)", std::string(200, 'x'))));
  for (size_t i = 1; i < entries.size(); ++i) {
    entries[i].name[0] = static_cast<char>('A' + i);
    entries[i].shared = true;
  }
  EXPECT_ERROR(parse(entries), kInvalid, "is more than the archive has left");
}

TEST(Npz, TruncatedOrMutatedArchivesAreReadOrErrors) {
  const std::string whole = test::read_whole_file(str(RLX_UNIT_FIXTURES, "/deflated.npz"));
  for (size_t n = 0; n < whole.size(); n += 97) {
    const std::string part = whole.substr(0, n);
    EXPECT_ERROR(parse_npz(as_bytes(part), "part"), kInvalid, "while reading part") << n << " bytes";
  }
  test::for_random(300, [&](test::Rng& rng) {
    std::string file = whole;
    for (int i = 0; i < 5; ++i)
      file[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(file.size()) - 1))] = static_cast<char>(rng.bits());
    try {
      parse_npz(as_bytes(file), "mutated");
    } catch (const Error&) {
    }
  });
}

}  // namespace
}  // namespace rlx
