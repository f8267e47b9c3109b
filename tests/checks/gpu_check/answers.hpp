/// The questions that a run on a GPU answers, in order, from the reports of the stages. Pure.
#pragma once

#include <string>

#include "tests/checks/gpu_check/stage_report.hpp"

namespace leasehold::gpu_check {

/// `stages` is the report's array. Returns an array with one object per question: `question`,
/// `stage`, `state` ("not run" without the stage), `verdict`, `missing` (JSON pointers to numbers
/// that the stage did not write) and `numbers`. The verdict is the worst of the stage's lines, and
/// unknown when a number is missing.
Json answers_from(const Json& stages);

/// Formats one line per question.
std::string text_of_answers(const Json& answers);

}  // namespace leasehold::gpu_check
