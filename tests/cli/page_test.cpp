// rlx info --ops and --graph.
#include <gtest/gtest.h>

#include <regex>

#include "tool.h"

namespace rlx::test {

namespace {

using nlohmann::json;

class InfoPage : public testing::Test {
 protected:
  // The JSON that the page holds.
  json data(const std::string& page) const {
    const std::string open = "id=\"data\">";
    const size_t start = page.find(open) + open.size();
    return json::parse(page.substr(start, page.find("</script>", start) - start));
  }
  std::string page(const std::string& graph, const std::string& more = "") const {
    folder.write("g.rlx", graph);
    const ToolResult r = run_tool(str("info ", folder.path("g.rlx"), " --graph ", folder.path("g.html"), " ", more));
    EXPECT_EQ(r.code, 0) << r.err;
    return read_whole_file(folder.path("g.html"));
  }
  const TempFolder folder;
};

TEST_F(InfoPage, NeedsNothingFromOutside) {
  const std::string html = page(kToyGraph);
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  EXPECT_EQ(html.find("http"), html.npos);
  EXPECT_EQ(html.find("src="), html.npos);
  EXPECT_EQ(html.find("@import"), html.npos);
  EXPECT_EQ(html.find("url("), html.npos);
  EXPECT_EQ(html.find("@DATA@"), html.npos);
}

TEST_F(InfoPage, HoldsTheGraphBeforeAndAfterThePasses) {
  const json d = data(page(kToyGraph, "--device cpu"));
  ASSERT_EQ(d["views"].size(), 2u);
  EXPECT_EQ(d["views"][0]["title"], "before passes");
  EXPECT_EQ(d["views"][1]["title"], "after passes for cpu");
  const json before = d["graphs"][d["views"][0]["graph"].get<size_t>()];
  EXPECT_EQ(before["name"], "toy");
  ASSERT_EQ(before["nodes"].size(), 8u);
  const json softmax = before["nodes"][5];
  EXPECT_EQ(softmax["o"], "softmax");
  EXPECT_EQ(softmax["l"], "%b");
  EXPECT_EQ(softmax["t"], json({"[batch, 4] f32"}));
  EXPECT_EQ(softmax["i"], json::parse("[[4, 0]]"));
  EXPECT_EQ(softmax["a"], json::parse("[[\"axis\", \"-1\"]]"));
  EXPECT_EQ(before["outputs"][1], json::parse("[\"probs\", 5, 0]"));
  EXPECT_FALSE(d["docs"]["softmax"].get<std::string>().empty());
}

TEST_F(InfoPage, NamesCannotBreakOutOfTheirScript) {
  const std::string html = page("graph @g {\n  %x = input() : [1] f32\n  return \"</script><b>\"=%x\n}\n");
  EXPECT_EQ(html.find("<b>"), html.npos);
  EXPECT_EQ(data(html)["graphs"][0]["outputs"][0][0], "</script><b>");
}

TEST_F(InfoPage, OpsAreCountedBeforeAndAfter) {
  const std::string mlp = RLX_SOURCE_DIR "/examples/mlp.rlx";
  const ToolResult r = run_tool(str("info ", mlp, " --ops --device cpu --json"));
  ASSERT_EQ(r.code, 0) << r.err;
  const auto count = [&](const char* list, const std::string& op) {
    const json counts = r.json()[list];
    for (const json& entry : counts)
      if (entry["op"] == op) return entry["count"].get<int>();
    return 0;
  };
  EXPECT_EQ(count("ops", "matmul"), 2);
  EXPECT_EQ(count("ops", "fused_matmul_bias_act"), 0);
  EXPECT_EQ(count("ops_after", "matmul"), 0);
  EXPECT_EQ(count("ops_after", "fused_matmul_bias_act"), 2);
  const ToolResult text = run_tool(str("info ", mlp, " --ops --device cpu"));
  EXPECT_TRUE(std::regex_search(text.out, std::regex("fused_matmul_bias_act +- +2\n"))) << text.out;
  EXPECT_TRUE(std::regex_search(text.out, std::regex("matmul +2 +-\n"))) << text.out;
}

TEST_F(InfoPage, FlopsAreThoseOfTheSizesGiven) {
  folder.write("m.rlx",
               "graph @m {\n  symbol ?16 = \"n\"\n  %x = input() : [?16, 8] f32\n  %w = param() : [8, 4] f32\n"
               "  %y = matmul(%x, %w) : [?16, 4] f32\n  return %y\n}\n");
  const json unknown = run_tool(str("info ", folder.path("m.rlx"), " --json")).json();
  EXPECT_TRUE(unknown["flops"].is_null());
  const json known = run_tool(str("info ", folder.path("m.rlx"), " --json --dim n=10")).json();
  EXPECT_EQ(known["flops"], 2 * 10 * 8 * 4);
  EXPECT_EQ(known["traffic_bytes"], 4 * (10 * 8 + 8 * 4 + 10 * 4));
  EXPECT_EQ(known["param_elements"], 32);
}

}  // namespace

}  // namespace rlx::test
