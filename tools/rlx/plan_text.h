// A compiled program's memory plan and schedule, for people and as JSON.
#pragma once

#include <string>

#include "common.h"

namespace rlx::cli {

std::string plan_text(const PlanInfo& plan, const std::string& device);
Json plan_json(const PlanInfo& plan);

}  // namespace rlx::cli
