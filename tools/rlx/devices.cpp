#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

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
        Json adapters = Json::array();
        for (const DeviceDetail& a : d.adapters)
          adapters.push_back(
              {{"name", a.name},
               {"driver", a.driver},
               {"type", a.type},
               {"features", a.features},
               {"max_buffer_bytes", a.max_buffer_bytes},
               {"max_binding_bytes", a.max_binding_bytes},
               {"workgroup_bytes", a.workgroup_bytes},
               {"workgroup_threads", a.workgroup_threads},
               {"storage_bindings", a.storage_bindings},
               {"subgroup_sizes", {a.subgroup_min, a.subgroup_max}},
               {"uses", {{"f16", a.uses_f16}, {"subgroups", a.uses_subgroups}, {"timestamps", a.uses_timestamps}}}});
        list.push_back({{"name", d.name},
                        {"description", d.description},
                        {"available", d.available},
                        {"why_not", d.available ? Json() : Json(d.why_not)},
                        {"adapters", adapters}});
        rows.push_back({d.name, d.available ? "available" : "not available",
                        d.available ? d.description : str(d.description, " (", d.why_not, ")")});
        for (size_t i = 0; i < d.adapters.size(); ++i) {
          const DeviceDetail& a = d.adapters[i];
          std::string uses;
          for (const auto& [used, name] :
               {std::pair{a.uses_f16, "f16"}, {a.uses_subgroups, "subgroups"}, {a.uses_timestamps, "timestamps"}})
            if (used) uses += str(uses.empty() ? "" : ", ", name);
          std::string features;
          for (const std::string& f : a.features) features += str(features.empty() ? "" : ", ", f);
          rows.push_back({str("  ", d.name, ":", i), str(a.type, ", ", a.driver),
                          str(a.name, "; uses ", uses.empty() ? "no optional feature" : uses)});
          rows.push_back({"", "", str("offers ", features.empty() ? "no optional feature" : features)});
          rows.push_back({"", "",
                          str("buffers to ", a.max_buffer_bytes >> 20, " MiB, bindings to ", a.max_binding_bytes >> 20,
                              " MiB, ", a.storage_bindings, " at once; workgroups of ", a.workgroup_threads,
                              " threads, ", a.workgroup_bytes >> 10, " KiB")});
        }
      }
      out += *json ? dump({{"devices", list}}) : table_text(rows, 0);
      return 0;
    };
  });
}

}  // namespace rlx::cli
