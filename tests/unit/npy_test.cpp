#include "core/npy.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "support/expect_error.h"
#include "support/random.h"
#include "support/temp_folder.h"

namespace rlx {
namespace {

using test::TempFolder;

std::string fixture(std::string_view name) { return str(RLX_UNIT_FIXTURES, "/", name); }
std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// What counting() of make_npy.py gives for element i.
double counted(DType dtype, int64_t i) {
  if (is_float(dtype) || is_complex(dtype)) return static_cast<double>(i) + 0.5;
  if (dtype == DType::Bool) return i % 3 == 0;
  return static_cast<double>(is_signed(dtype) ? i - 3 : i);
}

void expect_counting(const Tensor& t, DType dtype, const std::vector<int64_t>& sizes) {
  EXPECT_EQ(t.dtype(), dtype);
  EXPECT_EQ(t.sizes(), sizes);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    EXPECT_EQ(t.at(i), counted(dtype, i)) << "element " << i;
    if (dtype == DType::C64) {
      EXPECT_EQ(t.values<std::complex<float>>()[static_cast<size_t>(i)].imag(), static_cast<float>(-i));
    }
  }
}

// An .npy file with this header text and data.
std::string npy(std::string_view dict, std::string_view data = "", int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>((dict.size() >> (8 * i)) & 255);
  return out.append(dict).append(data);
}
Tensor parse(const std::string& file) { return parse_npy(as_bytes(file), "test"); }

TEST(Npy, ReadsWhatNumPyWrote) {
  expect_counting(read_npy(fixture("v1_c_f4.npy")), DType::F32, {2, 3});
  expect_counting(read_npy(fixture("v2_fortran_f8.npy")), DType::F64, {2, 3, 4});
  expect_counting(read_npy(fixture("v3_big_i4.npy")), DType::I32, {5});
  const Tensor scalar = read_npy(fixture("scalar_i8.npy"));
  EXPECT_TRUE(scalar.sizes().empty());
  EXPECT_EQ(scalar.values<int64_t>()[0], -9007199254740993);
  EXPECT_EQ(read_npy(fixture("scalar_u8.npy")).values<uint64_t>()[0], 18446744073709551615u);
}

TEST(Npy, ReadsEveryElementTypeInEitherByteAndAxisOrder) {
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    const auto arrays = read_npz(fixture(file));
    const std::pair<const char*, DType> kinds[] = {
        {"f2", DType::F16}, {"f4", DType::F32},  {"f8", DType::F64}, {"i1", DType::I8},  {"i2", DType::I16},
        {"i4", DType::I32}, {"i8", DType::I64},  {"u1", DType::U8},  {"u4", DType::U32}, {"u2", DType::U16},
        {"u8", DType::U64}, {"b1", DType::Bool}, {"c8", DType::C64}};
    for (const auto& [code, dtype] : kinds)
      for (const char* order : {"_little_c", "_big_c", "_little_f", "_big_f"}) {
        SCOPED_TRACE(str(file, ": ", code, order));
        expect_counting(arrays.at(str(code, order)), dtype, {3, 2});
      }
    EXPECT_EQ(arrays.at("empty").type(), (TensorType{{0, 4}, DType::F32}));
    EXPECT_EQ(arrays.at("scalar"), Tensor::f32({}, {2.5f}));
  }
  EXPECT_EQ(read_npz(fixture("deflated.npz")).at("zeros"), Tensor(DType::F32, {64, 64}));
}

TEST(Npy, WritesTheBytesThatNumPyWrites) {
  const TempFolder folder;
  for (const char* name : {"v1_c_f4.npy", "scalar_i8.npy", "scalar_u8.npy"}) {
    write_npy(folder.path(name), read_npy(fixture(name)));
    EXPECT_EQ(test::read_whole_file(folder.path(name)), test::read_whole_file(fixture(name))) << name;
  }
}

TEST(Npy, RoundTripsEveryDTypeAndRank) {
  const TempFolder folder;
  test::Rng rng(1);
  std::map<std::string, Tensor> all;
  for (const DType dtype : all_dtypes())
    for (const auto& sizes : std::vector<std::vector<int64_t>>{{}, {0}, {1}, {7}, {3, 5}, {2, 0, 3}, {1, 2, 3, 4, 5}}) {
      const Tensor t = rng.tensor(sizes, dtype);
      SCOPED_TRACE(str(t.type()));
      const Tensor expected = dtype == DType::BF16 ? t.cast(DType::F32) : t;  // bf16 is written as f4
      write_npy(folder.path("a.npy"), t);
      EXPECT_EQ(read_npy(folder.path("a.npy")), expected);
      EXPECT_EQ(read_npy(folder.path("a.npy")).cast(dtype), t);
      all[str(dtype, t.rank(), "_", t.num_elements())] = t;
    }
  write_npz(folder.path("a.npz"), all);
  const auto back = read_npz(folder.path("a.npz"));
  EXPECT_EQ(back.size(), all.size());
  for (const auto& [name, t] : all) EXPECT_EQ(back.at(name).cast(t.dtype()), t) << name;
  EXPECT_EQ(folder.files().size(), 2u) << "temporary files are left";
}

TEST(Npy, TheDataBeginsAtAMultipleOf64) {
  const TempFolder folder;
  for (int64_t rank = 0; rank < 40; ++rank) {
    write_npy(folder.path("a.npy"), Tensor(DType::I8, std::vector<int64_t>(static_cast<size_t>(rank), 1)));
    EXPECT_EQ(test::read_whole_file(folder.path("a.npy")).size() % 64, 1u) << "rank " << rank;
  }
}

TEST(Npy, HeadersMaySayTheSameInOtherWords) {
  const std::string data("\1\0\2\0", 4);
  for (const char* dict : {
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }   \n",
           "{'descr':'<i2','fortran_order':False,'shape':(2,)}",
           "{\"shape\": (2 ,), \"descr\": \"<i2\", \"fortran_order\": True}\n",
           " { 'fortran_order' : True , 'shape' : ( 2L , ) , 'descr' : '=i2' } ",
       })
    for (const int version : {1, 2, 3}) {
      const Tensor t = parse(npy(dict, data, version));
      EXPECT_EQ(t.type(), (TensorType{{2}, DType::I16})) << dict;
      EXPECT_EQ(t.at(1), 2) << dict;
    }
}

TEST(Npy, BooleansAreStoredAsZeroOrOne) {
  const Tensor t = parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", std::string("\0\1\xff", 3)));
  EXPECT_EQ(std::to_integer<int>(t.bytes()[2]), 1);
}

TEST(Npy, UnreadableElementsAreUnsupported) {
  for (const char* name : {"c16", "text"})
    EXPECT_ERROR(read_npy(fixture(str(name, ".npy"))), kUnsupported, "which no dtype of rlx can hold.");
  EXPECT_ERROR(read_npy(fixture("c16.npy")), kUnsupported, "holds elements '<c16'");
  EXPECT_ERROR(read_npy(fixture("objects.npy")), kUnsupported, "Python objects");
  EXPECT_ERROR(read_npy(fixture("records.npy")), kUnsupported, "records");
}

TEST(Npy, MalformedHeadersAreErrors) {
  const auto expect = [](std::string_view dict, std::string_view text) {
    EXPECT_ERROR(parse(npy(dict, std::string(8, '\0'))), kInvalid, text) << dict;
  };
  expect("", "'{' is expected");
  expect("{", "a quoted key is expected");
  expect("{}", "key 'descr' is missing");
  expect("{'descr': '<f4', 'fortran_order': False}", "key 'shape' is missing");
  expect("{'descr': '<f4', 'shape': (2,)}", "key 'fortran_order' is missing");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "'}' is expected");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "something follows the dict");
  expect("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "key 'descr' is repeated");
  expect("{'extra': 1, 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "key 'extra' is unknown");
  expect("{'ex\ntra\x07': 1}", "key 'ex?tra?' is unknown");
  expect("{'descr': '<f4", "does not end");
  expect("{'descr': '<\\x664'}", "backslash");
  expect("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "True or False is expected");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "'(' is expected");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (2)}", "not a tuple");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "a size is expected");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}", "')' is expected");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "does not fit 64 bits");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "does not fit 64 bits");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}", "does not fit 64 bits");
  std::string many = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 65; ++i) many += "1, ";
  expect(many + ")}", "more than 64 sizes");
  expect("{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}", "does not begin with a byte order");
  expect("{'descr': '', 'fortran_order': False, 'shape': (2,)}", "does not begin with a byte order");
  expect("{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}", "has no byte order");
}

TEST(Npy, TruncatedFilesAreErrors) {
  const std::string whole = test::read_whole_file(fixture("v2_fortran_f8.npy"));
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::string part = whole.substr(0, n);
    EXPECT_ERROR(parse_npy(as_bytes(part), "part"), kInvalid, "while reading part") << n << " bytes";
  }
  EXPECT_ERROR(parse(whole.substr(0, whole.size() - 1)), kInvalid,
               "The .npy data is truncated: [2, 3, 4] f64 needs 192 bytes, 191 are there.");
  EXPECT_ERROR(parse(whole + "x"), kInvalid, "too long");
  EXPECT_ERROR(parse("\x93NUMPX\1\0"), kInvalid, "magic number");
  EXPECT_ERROR(parse(std::string("\x93NUMPX\1\0__", 10)), kInvalid, "not an .npy array");
  EXPECT_ERROR(parse(std::string("\x93NUMPY\4\0__", 10)), kUnsupported, "version (4.0)");
  EXPECT_ERROR(parse(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12)), kInvalid, "header length (4294967295)");
}

TEST(Npy, AHugeShapeOfNoElementsIsEmpty) {
  const Tensor t =
      parse(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387904, 0, 4611686018427387904)}"));
  EXPECT_EQ(t.num_elements(), 0);
}

TEST(Npy, AnyMutationIsReadOrAnError) {
  const std::string whole = test::read_whole_file(fixture("v2_fortran_f8.npy"));
  test::for_random(2000, [&](test::Rng& rng) {
    std::string file = whole;
    for (int i = 0; i < 3; ++i)
      file[static_cast<size_t>(rng.integer(0, static_cast<int64_t>(file.size()) - 1))] = static_cast<char>(rng.bits());
    try {
      parse_npy(as_bytes(file), "mutated");
    } catch (const Error&) {
    }
  });
}

TEST(Npy, BadFilesAreErrorsWithTheirPath) {
  const TempFolder folder;
  EXPECT_ERROR(read_npy(folder.path("none.npy")), kUnavailable, folder.path("none.npy"));
  EXPECT_ERROR(read_npz(folder.path("none.npz")), kUnavailable, folder.path("none.npz"));
  EXPECT_ERROR(read_npy(folder.write("a.npy", "no array")), kInvalid,
               str("while reading '", folder.path("a.npy"), "'"));
  EXPECT_ERROR(read_npz(folder.write("a.npz", "no archive")), kInvalid, "This is not a zip archive");
  EXPECT_ERROR(write_npy(folder.path("none/a.npy"), Tensor()), kUnavailable, folder.path("none/a.npy"));
  EXPECT_ERROR(write_npz(folder.path("none/a.npz"), {{"a", Tensor()}}), kUnavailable, folder.path("none/a.npz"));
  EXPECT_EQ(folder.files().size(), 2u) << "temporary files are left";
}

}  // namespace
}  // namespace rlx
