/// Answers a fixed list of questions about a run on a GPU from the reports of the stages. Pure.
#pragma once

#include <string>

#include "tools/checks/gpu_check/stage_report.hpp"

namespace leasehold::gpu_check {

/// `stages`: the array of the report. Returns an array with one object per question: `question`,
/// `stage`, `state` ("not run" if the stage did not run), `verdict`, `missing` (JSON pointers of
/// numbers that the stage did not write) and `numbers`. The verdict is the worst one of the stage's
/// lines, or unknown if a number is missing.
Json answers_from(const Json& stages);

/// Formats one line per question.
std::string text_of_answers(const Json& answers);

}  // namespace leasehold::gpu_check
