// A compiled program's memory plan and schedule, for people and as JSON.
#pragma once

#include <string>

#include "common.h"

namespace rlx::cli {

std::string plan_text(const PlanInfo& plan, const std::string& device);
std::string schedule_text(const PlanInfo& plan);
Json plan_json(const PlanInfo& plan);
// What the passes did, and how long they took.
std::string passes_text(const CompileReport& report);
Json passes_json(const CompileReport& report);

}  // namespace rlx::cli
