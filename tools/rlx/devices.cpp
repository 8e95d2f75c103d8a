#include "common.h"

namespace rlx::cli {

void add_devices(CLI::App& app, Work& work) {
  CLI::App* sub = app.add_subcommand("devices", "list what graphs can run on, best first");
  auto json = std::make_shared<bool>(false);
  sub->add_flag("--json", *json, "write JSON");
  sub->footer("Examples:\n  rlx devices\n  rlx run graph.rlx --random-inputs --device reference");
  sub->callback([&work, json] {
    work = [json](std::string& out) {
      Json list = Json::array();
      std::vector<std::vector<std::string>> rows;
      for (const DeviceInfo& d : devices()) {
        list.push_back({{"name", d.name},
                        {"description", d.description},
                        {"available", d.available},
                        {"why_not", d.available ? Json() : Json(d.why_not)}});
        rows.push_back({d.name, d.available ? "available" : "not available",
                        d.available ? d.description : str(d.description, " (", d.why_not, ")")});
      }
      out += *json ? dump({{"devices", list}}) : table_text(rows, 0);
      return 0;
    };
  });
}

}  // namespace rlx::cli
